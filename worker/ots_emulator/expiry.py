"""When which row of a table with a time to live has to be looked at.

Every row has one date: not later than its oldest cell's expiry. A row that is written again keeps its date where that
is early enough, so that a row costs one entry however often it is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from ots_emulator.keys import Key

#: Dates that are no longer true are swept out when there are more of them than rows, and more than this.
_SLACK = 1000


class ExpiryQueue:
    """Rows by the time of their oldest cell, in milliseconds."""

    def __init__(self) -> None:
        self._dates: dict[Key, int] = {}
        self._heap: list[tuple[int, Key]] = []

    def __repr__(self) -> str:
        return f"ExpiryQueue({len(self)} rows)"

    def __len__(self) -> int:
        return len(self._dates)

    def note(self, key: Key, oldest_ms: int) -> None:
        """See to it that a row is looked at when a cell of this time expires."""
        known = self._dates.get(key)
        if known is None or oldest_ms < known:
            self._dates[key] = oldest_ms
            heappush(self._heap, (oldest_ms, key))

    def forget(self, key: Key) -> None:
        """Drop a row that is gone."""
        if self._dates.pop(key, None) is not None and len(self._heap) > 2 * len(self._dates) + _SLACK:
            self._heap = [(oldest_ms, known) for known, oldest_ms in self._dates.items()]
            heapify(self._heap)

    def take(self, before_ms: int) -> Iterator[Key]:
        """Take out the rows that may have cells older than a time; those that still have cells must be noted again."""
        while self._heap and self._heap[0][0] < before_ms:
            oldest_ms, key = heappop(self._heap)
            if self._dates.get(key) == oldest_ms:
                del self._dates[key]
                yield key
