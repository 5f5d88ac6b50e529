"""A limit of rows per second, of reads or of writes: the next one waits, and no record is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

#: Seconds below which a wait is a rounding error of the clock.
SHORTEST_WAIT = 1e-6


class RateLimit:
    """Spreads reads, or the writes of a sink, over time by a budget of rows. It is described by reads.

    Each read is charged in advance with the rows of the last page, so that channels that wait together do not read
    together. After the read the difference to its real rows is charged.

    Args:
        rows_per_second: 0 means no limit.
        clock, sleep: replaced in tests; those of the loop by default.
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
        """Wait until the budget covers all rows read so far; returns the rows charged in advance for the next read."""
        while (wait := self._free_at - self._clock()) > SHORTEST_WAIT:
            await self._sleep(wait)
        self._charge(self._last_page)
        return self._last_page

    def spend(self, rows: int, charged: int = 0) -> None:
        """Charge rows that were read, minus those charged in advance."""
        self._last_page = rows
        self._charge(rows - charged)

    def refund(self, charged: int) -> None:
        """Return the rows charged in advance: the read failed."""
        self._charge(-charged)

    def _charge(self, rows: int) -> None:
        if self._rows_per_second:
            self._free_at = max(self._free_at, self._clock()) + rows / self._rows_per_second
