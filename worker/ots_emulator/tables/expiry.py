"""When which row of a table with a time to live has to be looked at.

A row with cells has a date that is not later than its oldest cell. Dates are never taken back, because that would cost
memory for every row: a row that is gone or has become younger is looked at in vain, once.
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

    def note(self, oldest_ms: int, key: Key) -> None:
        """See to it that a row is looked at when a cell of this time expires."""
        heappush(self._heap, (oldest_ms, key))

    def take(self, before_ms: int) -> Iterator[Key]:
        """Take out the rows that may have cells older than a time; those that keep cells must be noted again."""
        while self._heap and self._heap[0][0] < before_ms:
            yield heappop(self._heap)[1]
