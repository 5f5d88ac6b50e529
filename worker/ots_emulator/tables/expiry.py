"""Queue of the times at which rows of a table with a time to live may expire.

A row with cells has a date that is not later than its oldest cell. No single date is removed, because that would cost
memory for every row: the date of a row that is gone or was rewritten causes one check that finds nothing. Where such
dates are the most, `Rows` builds a new queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from ots_emulator.tables.keys import Key


class ExpiryQueue:
    """Dates of rows, in milliseconds."""

    def __init__(self, dates: Iterable[tuple[int, Key]] = ()) -> None:
        self._heap = list(dates)
        heapify(self._heap)

    def __repr__(self) -> str:
        return f"ExpiryQueue({len(self)} dates)"

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, oldest_ms: int, key: Key) -> None:
        """Add a row whose oldest cell has this time."""
        heappush(self._heap, (oldest_ms, key))

    def take(self, before_ms: int) -> Iterator[Key]:
        """Remove and yield rows that may have cells older than a time; the caller adds rows that keep cells again."""
        while self._heap and self._heap[0][0] < before_ms:
            yield heappop(self._heap)[1]
