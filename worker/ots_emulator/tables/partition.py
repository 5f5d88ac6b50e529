"""One partition of a table: its key range and the entries of its change log.

Positions count entries from the birth of the partition and stay valid when old entries are trimmed.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from ots_emulator.tables.keys import Key

#: Trimming moves both lists, so it waits until this many entries are due, or half of them.
_TRIM_STEP: Final = 256


@dataclass(slots=True, eq=False)
class Partition:
    """A key range of the table and the log of its changes."""

    id: str
    start: Key
    parents: tuple[str, ...]
    created_us: int
    closed_us: int | None = None
    base: int = 0
    """Entries that were trimmed, which is the position of the first retained one."""
    times_us: list[int] = field(default_factory=list, repr=False)
    entries: list[bytes] = field(default_factory=list, repr=False)

    @property
    def end(self) -> int:
        """The position after the last entry."""
        return self.base + len(self.entries)

    def append(self, timestamp_us: int, entry: bytes) -> None:
        """Add an entry; its time must not be before the last one's."""
        self.times_us.append(timestamp_us)
        self.entries.append(entry)

    def position_at(self, timestamp_us: int) -> int:
        """Return the position of the first retained entry at or after a time."""
        return self.base + bisect_left(self.times_us, timestamp_us)

    @property
    def size_bytes(self) -> int:
        """Bytes of all entries."""
        return sum(map(len, self.entries))

    def trim(self, before_us: int) -> int:
        """Remove entries older than a time once they are many or at least half of all; return their bytes."""
        due = bisect_left(self.times_us, before_us)
        if not due or (due < _TRIM_STEP and 2 * due < len(self.entries)):
            return 0
        removed = sum(map(len, self.entries[:due]))
        del self.times_us[:due], self.entries[:due]
        self.base += due
        return removed

    def clear(self) -> int:
        """Remove every entry; return their bytes."""
        removed = self.size_bytes
        self.base = self.end
        self.times_us.clear()
        self.entries.clear()
        return removed
