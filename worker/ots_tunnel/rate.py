"""A limit of rows per second, kept by waiting before a read, never by dropping or delaying what was read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class RateLimit:
    """Spreads rows over time: the next read waits until what was read is paid for.

    A read is charged ahead with the rows of the last page, so that channels that waited together do not read
    together; what it really brought settles the rest.

    Args:
        rows_per_second: 0 means no limit.
        clock, sleep: replaced in tests; the loop's by default.
    """

    def __init__(
        self,
        rows_per_second: int,
        *,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rows_per_second = rows_per_second
        self._clock = clock or asyncio.get_running_loop().time
        self._sleep = sleep
        self._free_at = float("-inf")
        self._last_page = 0

    async def ready(self) -> int:
        """Wait until everything read so far is paid for; the rows with which the next read is charged ahead."""
        while (wait := self._free_at - self._clock()) > 0:
            await self._sleep(wait)
        self._charge(self._last_page)
        return self._last_page

    def spend(self, rows: int, charged: int = 0) -> None:
        """Charge rows that were read, less what was charged ahead."""
        self._last_page = rows
        self._charge(rows - charged)

    def refund(self, charged: int) -> None:
        """The read brought nothing: give back what was charged ahead."""
        self._charge(-charged)

    def _charge(self, rows: int) -> None:
        if self._rows_per_second:
            self._free_at = max(self._free_at, self._clock()) + rows / self._rows_per_second
