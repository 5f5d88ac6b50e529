"""The change log of one table: partitions, each with its own strictly ordered entries.

Theory of operation
-------------------
Parts. A `Partition` has a key range and the entries of its changes. `ChangeLog` holds all partitions of a table. The
open ones cover all keys without gaps and take new changes; closed ones only have a history.

An entry is stored as the bytes of one record field of ReadRecords' answer, so a page is a join of entries. Appending
adds what a row lacks as a record: header, sequence extension with the commit time, and nothing else. The row's
checksum covers neither, so it stays valid. Where the stream has origin columns, their values before the change follow.

Rules:

1. Commit times are microseconds and strictly increase over the whole table, also when the clock stands still or steps
   back: each is the clock's time, or one more than the last. So children are later than their parents. Records that
   are appended `together` have one time and growing row indexes; no partition is split or merged between them.
   A reader may have been promised that it has everything until some time (`promise`): later records are behind it.
2. Positions count entries from the birth of a partition. Trimming moves `Partition.base`, never a position.
3. A split closes one partition and opens two, a merge closes two and opens one. The children name their parents, which
   a reader must finish first (docs/protocol.md 4.1).
4. Entries older than the retention (1 to 168 hours) are removed, and so are closed partitions. `expire` removes 256
   entries or half of them at once; `first_position` hides the others exactly on time. Channels of tunnels refer to
   partitions that the log has removed, so those are emptied.

Example: partition P has entries at positions 0 and 1 with times 100 and 105. A split at key ``m`` and time 105 closes
P at 106 and opens C1 (from P's start) and C2 (from ``m``). A change of key ``z`` at time 105 goes to C2, position 0,
time 107.

Source: docs/protocol.md 3.1, 3.3, 4.1, 4.7, 4.8.
"""

from __future__ import annotations

import uuid
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self

from ots_emulator.tables.keys import BOTTOM_KEY, Key
from ots_emulator.tables.listener import SILENT, LogListener
from ots_emulator.tables.partition import Partition
from ots_emulator.wire import origin_field, record_head
from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.tags import (
    CHECKSUM_BYTES,
    EXTENSION,
    HEADER,
    SEQUENCE,
    SEQUENCE_BODY,
    SEQUENCE_EPOCH,
    SEQUENCE_LENGTH,
    SEQUENCE_ROW_INDEX,
    SEQUENCE_TIMESTAMP,
    TAG_LENGTH,
    TAG_LENGTH_BYTES,
)

#: The beginning of a record's extension (docs/protocol.md 3.1): its own tag and length, and those of the sequence.
_EXTENSION_START: Final = TAG_LENGTH.pack(EXTENSION, TAG_LENGTH_BYTES + SEQUENCE_LENGTH) + TAG_LENGTH.pack(
    SEQUENCE, SEQUENCE_LENGTH
)
#: What a row gets as a record: header and extension.
_ADDED_BYTES: Final = len(HEADER) + len(_EXTENSION_START) + SEQUENCE_LENGTH
_pack_sequence: Final = SEQUENCE_BODY.pack
HOUR_US: Final = 3_600_000_000


@dataclass(frozen=True, slots=True)
class LogPage:
    """Consecutive entries of one partition, and the commit time of the last one (None without entries)."""

    entries: list[bytes]
    next_position: int
    last_us: int | None


class ChangeLog:
    """All partitions of one table since its stream was switched on.

    Args:
        stream_id: its name for clients.
        retention_hours: 1 to 168 (docs/data-plane.md 2.8).
        now_us: when it was switched on.
        starts: where the partitions start; the first must be the bottom.
        listener: receives what is appended and removed.
    """

    def __init__(
        self, stream_id: str, retention_hours: int, now_us: int, starts: list[Key], listener: LogListener = SILENT
    ) -> None:
        self.stream_id = stream_id
        self.retention_hours = retention_hours
        self.enabled_us = now_us
        #: Columns whose former values the entries carry.
        self.origin_columns: tuple[str, ...] = ()
        self.partitions: dict[str, Partition] = {}
        self._starts: list[Key] = []
        self._open: list[Partition] = []
        self._last_us = now_us
        #: Until when readers have everything, which may be later than the last commit.
        self._promised_us = now_us
        #: Row index of the next record where records have one time.
        self._row_index: int | None = None
        self._listener = listener
        self._removed_bytes = 0
        for start in starts or [BOTTOM_KEY]:
            self._add(start, ())

    @classmethod
    def loaded(
        cls,
        partitions: Iterable[Partition],
        *,
        stream_id: str,
        retention_hours: int,
        enabled_us: int,
        last_us: int,
        listener: LogListener,
        origin_columns: Iterable[str] = (),
    ) -> Self:
        """Build the log of stored partitions, in the order of their creation."""
        log = cls(stream_id, retention_hours, enabled_us, [], listener)
        log.origin_columns = tuple(origin_columns)
        log.partitions = {partition.id: partition for partition in partitions}
        log._open = [partition for partition in log.partitions.values() if partition.closed_us is None]
        log._open.sort(key=lambda partition: partition.start)
        log._starts = [partition.start for partition in log._open]
        # Times keep increasing, also if the clock was set back.
        latest = (max(part.created_us, part.closed_us or 0, *part.times_us[-1:]) for part in log.partitions.values())
        log._last_us = log._promised_us = max(last_us, *latest)
        return log

    def __repr__(self) -> str:
        return f"ChangeLog({self.stream_id}, {len(self._open)} open of {len(self.partitions)} partitions)"

    @property
    def open_partitions(self) -> tuple[Partition, ...]:
        """The partitions that take changes, in key order."""
        return tuple(self._open)

    @property
    def size_bytes(self) -> int:
        """Bytes of all entries."""
        return sum(partition.size_bytes for partition in self.partitions.values())

    @property
    def last_us(self) -> int:
        """The latest commit time handed out."""
        return self._last_us

    @property
    def complete_us(self) -> int:
        """Until when the log has everything: no later record gets this time or an earlier one."""
        return max(self._last_us, self._promised_us)

    def promise(self, until_us: int) -> None:
        """Let later records be behind a time, because a reader receives that it has everything until then."""
        self._promised_us = max(self._promised_us, until_us)

    def append(self, key: Key, action: Action, row: bytes, now_us: int, origin: bytes = b"") -> None:
        """Write one change.

        Args:
            row: PlainBuffer row without header and extension.
            origin: the former cells of the origin columns as a row with header, empty without any.
        """
        row_index = self._row_index or 0
        timestamp_us = self._last_us if row_index else self._tick(now_us)
        tail = origin_field(origin) if origin else b""
        head = record_head(action, len(row) + _ADDED_BYTES, len(tail))
        sequence = _pack_sequence(SEQUENCE_EPOCH, 0, SEQUENCE_TIMESTAMP, timestamp_us, SEQUENCE_ROW_INDEX, row_index)
        # One join, because every written row passes here.
        entry = b"".join((head, HEADER, row[:-CHECKSUM_BYTES], _EXTENSION_START, sequence, row[-CHECKSUM_BYTES:], tail))
        partition = self.locate(key)
        partition.append(timestamp_us, entry)
        self._listener.entry_appended(partition, timestamp_us, entry)
        if self._row_index is not None:
            self._row_index += 1

    @contextmanager
    def together(self) -> Iterator[None]:
        """Give the records that are appended meanwhile one time and growing row indexes."""
        self._row_index = 0
        try:
            yield
        finally:
            self._row_index = None

    @property
    def is_together(self) -> bool:
        """Whether records are being appended with one time."""
        return self._row_index is not None

    def locate(self, key: Key) -> Partition:
        """Return the open partition a key belongs to."""
        return self._open[bisect_right(self._starts, key) - 1]

    def end_of(self, partition: Partition) -> Key | None:
        """Return the end of an open partition; None is the end of all keys."""
        following = self._open.index(partition) + 1
        return self._starts[following] if following < len(self._starts) else None

    def split(self, partition: Partition, at: Key, now_us: int) -> tuple[Partition, Partition]:
        """Close an open partition and continue it in two children; the second starts at `at`."""
        closed_us = self._tick(now_us)
        index = self._open.index(partition)
        del self._open[index], self._starts[index]
        partition.closed_us = closed_us
        return self._add(partition.start, (partition.id,)), self._add(at, (partition.id,))

    def merge(self, left: Partition, right: Partition, now_us: int) -> Partition:
        """Close two neighbouring open partitions and continue them in one child."""
        closed_us = self._tick(now_us)
        index = self._open.index(left)
        assert self._open[index + 1] is right
        del self._open[index : index + 2], self._starts[index : index + 2]
        left.closed_us = right.closed_us = closed_us
        return self._add(left.start, (left.id, right.id))

    def first_position(self, partition: Partition, now_us: int) -> int:
        """Return the position of the first entry within the retention, whether or not older ones were removed."""
        return partition.position_at(now_us - self.retention_hours * HOUR_US)

    def read(self, partition: Partition, position: int, *, rows: int, size: int, end_us: int | None) -> LogPage:
        """Return up to `rows` entries, ending with the one that reaches `size` bytes or comes before `end_us`."""
        first = position - partition.base
        last = min(first + rows, len(partition.entries))
        if end_us is not None:
            last = min(last, max(first, bisect_left(partition.times_us, end_us)))
        entries = partition.entries[first:last]
        total = 0
        for count, entry in enumerate(entries, 1):
            total += len(entry)
            if total >= size:
                del entries[count:]
                break
        taken = first + len(entries)
        return LogPage(entries, partition.base + taken, partition.times_us[taken - 1] if entries else None)

    def expire(self, now_us: int) -> None:
        """Remove entries, and closed partitions, that are beyond the retention."""
        before_us = now_us - self.retention_hours * HOUR_US
        for partition in list(self.partitions.values()):
            if partition.closed_us is not None and partition.closed_us < before_us:
                self._removed_bytes += partition.clear()
                del self.partitions[partition.id]
                self._listener.partitions_changed(self.stream_id)
            elif partition.times_us and partition.times_us[0] < before_us:
                base = partition.base
                self._removed_bytes += partition.trim(before_us)
                if partition.base != base:
                    self._listener.partitions_changed(self.stream_id)

    def trim(self) -> None:
        """Remove every entry, as if the retention had passed."""
        for partition in self.partitions.values():
            self._removed_bytes += partition.clear()
        self._listener.partitions_changed(self.stream_id)

    def take_removed(self) -> int:
        """Return the bytes of the entries that were removed since the last call."""
        removed, self._removed_bytes = self._removed_bytes, 0
        return removed

    def _add(self, start: Key, parents: tuple[str, ...]) -> Partition:
        # The second part of a real id is the stream's enabling time (docs/protocol.md 2.3).
        partition = Partition(f"{uuid.uuid4()}_{self.enabled_us:016d}", start, parents, self._last_us)
        self.partitions[partition.id] = partition
        insort(self._starts, start)
        self._open.insert(self._starts.index(start), partition)
        self._listener.partitions_changed(self.stream_id)
        return partition

    def _tick(self, now_us: int) -> int:
        self._last_us = max(now_us, self._last_us + 1, self._promised_us + 1)
        return self._last_us
