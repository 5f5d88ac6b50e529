"""A limit of rows per second, kept by waiting before a read, never by dropping or delaying what was read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class RateLimit:
    """Spreads rows over time: a page is charged when it has come, and the next read waits until it is paid for.

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

    def spend(self, rows: int) -> None:
        """Charge rows that were read."""
        if self._rows_per_second:
            self._free_at = max(self._free_at, self._clock()) + rows / self._rows_per_second

    async def ready(self) -> None:
        """Wait until everything read so far is paid for."""
        while (wait := self._free_at - self._clock()) > 0:
            await self._sleep(wait)
