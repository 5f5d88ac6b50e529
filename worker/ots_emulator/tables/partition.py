"""One partition of a table: its key range and the entries of its change log.

Positions count entries from the birth of the partition and stay valid when old entries are trimmed.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from ots_emulator.tables.keys import Key

#: Trimming moves both lists, so it waits until this many entries are due.
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
        """Add an entry; its time must be later than the last one's."""
        self.times_us.append(timestamp_us)
        self.entries.append(entry)

    def position_at(self, timestamp_us: int) -> int:
        """Return the position of the first retained entry at or after a time."""
        return self.base + bisect_left(self.times_us, timestamp_us)

    def trim(self, before_us: int, *, step: int = _TRIM_STEP) -> None:
        """Remove entries older than a time, at least `step` of them or none."""
        due = bisect_left(self.times_us, before_us)
        if due >= step:
            del self.times_us[:due], self.entries[:due]
            self.base += due
