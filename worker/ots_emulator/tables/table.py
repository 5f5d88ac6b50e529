"""Tables: rows in key order, with their versions, and the change log of each; requests and messages are unknown here.

Rows are stored as the bytes that reads return (see `cells`). Versions beyond the maximum and expired cells disappear
for all readers at once.

Source: docs/data-plane.md 2.4 to 2.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import pairwise
from typing import Any

from ots_emulator.refusal import parameter_invalid
from ots_emulator.tables.cells import build_image, cells_of, has_versions, origin_of, scan_image
from ots_emulator.tables.changelog import ChangeLog
from ots_emulator.tables.cuts import check_split_key, middle, quantiles
from ots_emulator.tables.keys import BOTTOM_KEY, INT_MAX, TOP_KEY, Key, KeySchema, cut_element
from ots_emulator.tables.listener import SILENT, TableListener
from ots_emulator.tables.options import NO_FIXED_OPTIONS, ONE_PARTITION, FixedOptions, Partitioning, TableOptions
from ots_emulator.tables.partition import Partition
from ots_emulator.tables.row_change import DELETIONS, apply_update, row_of_put, touched_row
from ots_emulator.tables.rows import Rows
from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.spans import RowSpan

#: Receives the name of a table and the partitions that continue others of it.
OnChildren = Callable[[str, Sequence[Partition]], None]


def _ignore_children(table: str, children: Sequence[Partition]) -> None:
    """Ignore new partitions."""


class Table:
    """One table.

    Args:
        now_us: its creation time.
        fixed: what never changes.
        partitioning: how it splits itself as rows arrive.
        listener: receives every change.
        on_children: called with the children of every split and merge, so that tunnels get their channels at once.
    """

    def __init__(
        self,
        name: str,
        schema: KeySchema,
        options: TableOptions,
        *,
        now_us: int,
        fixed: FixedOptions = NO_FIXED_OPTIONS,
        partitioning: Partitioning = ONE_PARTITION,
        listener: TableListener = SILENT,
        on_children: OnChildren = _ignore_children,
    ) -> None:
        self.name = name
        self.schema = schema
        self.options = options
        self.created_us = now_us
        self.fixed = fixed
        self.partition_aim = partitioning.aim
        self.log: ChangeLog | None = None
        self._listener = listener
        self._on_children = on_children
        self._partition_rows = self._next_split = partitioning.rows
        self._rows = Rows(options.time_to_live, partial(listener.row_changed, name))
        self.last_auto_increment = 0
        #: The newest version that was chosen for a cell without one, None in a table that has had no stream.
        self._chosen_ms: int | None = None

    def __repr__(self) -> str:
        return f"Table({self.name}, {len(self)} rows, {self.size_bytes} bytes)"

    def __len__(self) -> int:
        return len(self._rows)

    # Reading

    @property
    def size_bytes(self) -> int:
        """Bytes of all rows."""
        return self._rows.size_bytes

    @property
    def revision(self) -> int:
        """A number for the current content of the rows; no other content, of any table, ever has it."""
        return self._rows.revision

    def get(self, key: Key, now_ms: int) -> bytes | None:
        """Return the visible image of a row, None when there is none."""
        self._rows.expire(now_ms)
        return self._rows.get(key)

    def scan(self, start: Key, end: Key, now_ms: int, *, backward: bool = False) -> Iterator[tuple[Key, bytes]]:
        """Iterate over visible rows from `start` (inclusive) to `end` (exclusive); `backward` from high to low keys."""
        self._rows.expire(now_ms)
        return self._rows.scan(start, end, backward=backward)

    def single_versions(self, key: Key) -> bool:
        """Whether no column of this row has more than one version."""
        return self._rows.single_versions(key)

    def expire(self, now_ms: int) -> None:
        """Remove cells older than the time to live."""
        self._rows.expire(now_ms)

    def expire_all(self, now_us: int) -> int:
        """Remove what time has expired from rows and log; return the bytes of all that was removed since the last call.

        Readers see it exactly on time without this, but nobody may read.
        """
        self._rows.expire(now_us // 1000)
        removed = self._rows.take_removed()
        if self.log is not None:
            self.log.expire(now_us)
            removed += self.log.take_removed()
        return removed

    # Writing

    def put(self, key: Key, row: bytes, span: RowSpan, now_us: int) -> None:
        """Replace a row; `row` is header and row as they were sent."""
        image, versioned = row_of_put(row, span, self._version_ms(now_us), self.options.max_versions)
        log = self.log
        if self.schema.auto_increment is not None:
            self._pass_auto_increment(key)
        # Rows of a load pass here, and most tables have no stream, or one without origin columns.
        if log is None:
            self._rows.store(key, image, versioned=versioned)
            return
        origin = self._origin(key, now_us) if log.origin_columns else b""
        self._rows.store(key, image, versioned=versioned)
        self._append_to_log(key, Action.PUT, image, now_us, origin)

    def update(self, key: Key, span: RowSpan, now_us: int) -> bytes:
        """Change single columns of a row and return the row of touched cells.

        A missing row is created, unless the change only deletes columns; the change log has the change in any case.

        Raises:
            Refusal: an increment of a value that is not an integer.
        """
        now_ms = now_us // 1000
        image = self.get(key, now_ms)
        before = cells_of(scan_image(image)) if image is not None else []
        origin = self._origin(key, now_us)
        touched, after = apply_update(before, span, self._version_ms(now_us), self.options.max_versions)
        if image is not None or any(cell.op not in DELETIONS for cell in span.cells):
            self._pass_auto_increment(key)
            self._rows.store(key, build_image(span, after), versioned=has_versions(after))
        change = touched_row(span, touched)
        self._append_to_log(key, Action.UPDATE, change, now_us, origin)
        return change

    def delete(self, key: Key, span: RowSpan, now_us: int) -> None:
        """Remove a row; a missing one is only logged."""
        origin = self._origin(key, now_us)
        self._rows.remove(key)
        self._append_to_log(key, Action.DELETE, build_image(span, (), delete=True), now_us, origin)

    def _version_ms(self, now_us: int) -> int:
        """Return the version of cells without one: the clock's time, but with a stream not before the one chosen last.

        With an earlier one a later update would be the older version where the clock was set back.
        """
        least_ms, now_ms = self._least_version_ms(), now_us // 1000
        if least_ms is None:
            return now_ms
        self._chosen_ms = max(least_ms, now_ms)
        return self._chosen_ms

    def _least_version_ms(self) -> int | None:
        # After a restart, the last record tells it.
        return self.log.last_us // 1000 if self._chosen_ms is None and self.log is not None else self._chosen_ms

    def next_auto_increment(self, now_us: int) -> int:
        """Return a value for an auto-increment key column, greater than all before it, also than those of clients.

        It is the time in microseconds, without those of the current millisecond.

        Raises:
            Refusal: a client has written a row with the highest integer.
        """
        if self.last_auto_increment == INT_MAX:
            text = f"no value is left for the auto-increment column of table {self.name!r}: it has a row with {INT_MAX}"
            raise parameter_invalid(text)
        self.last_auto_increment = max(self.last_auto_increment + 1, now_us // 1000 * 1000)
        return self.last_auto_increment

    def _pass_auto_increment(self, key: Key) -> None:
        """Let later values be greater than that of a row which is stored."""
        place = self.schema.auto_increment
        if place is not None and key[place] > self.last_auto_increment:
            self.last_auto_increment = key[place]

    def fork(self, partition_key: Any) -> Table:
        """Return a separate table with the rows of one partition key, without log and listener."""
        copy = Table(self.name, self.schema, self.options, now_us=self.created_us, fixed=self.fixed)
        self._rows.copy_to(copy._rows, (partition_key,), self.schema.after((partition_key,)))
        copy._chosen_ms = self._least_version_ms()
        return copy

    def check_versions(self, span: RowSpan, now_us: int) -> None:
        """Refuse cell versions too far from the server's time (docs/data-plane.md 2.5).

        Raises:
            Refusal: OTSParameterInvalid naming the cell.
        """
        now = now_us // 1_000_000
        options = self.options
        low = now - options.max_deviation
        if options.time_to_live > 0:
            low = max(low, now - options.time_to_live)
        low_ms, high_ms = low * 1000, (now + options.max_deviation) * 1000
        # The cells of a row usually have one time, so one comparison is enough.
        times = {cell.timestamp_ms for cell in span.cells if cell.timestamp_ms is not None}
        if all(low_ms <= timestamp_ms < high_ms for timestamp_ms in times):
            return
        for cell in span.cells:
            timestamp_ms = cell.timestamp_ms
            # A deletion of a version writes no version.
            if timestamp_ms is not None and not cell.op and not low_ms <= timestamp_ms < high_ms:
                raise parameter_invalid(f"Invalid timestamp. Cell:{cell.name.decode()}.")

    def change_options(self, options: TableOptions, now_us: int) -> None:
        """Apply new options; versions beyond a lower maximum are removed at once, expired cells stay removed."""
        self._rows.expire(now_us // 1000)
        lowered = options.max_versions < self.options.max_versions
        self.options = options
        self._listener.table_touched(self.name)
        self._rows.change_time_to_live(options.time_to_live)
        if lowered:
            self._rows.keep_newest(options.max_versions)

    def _origin(self, key: Key, now_us: int) -> bytes:
        """Return the newest cells of the stream's origin columns, empty if there are none."""
        if self.log is None or not self.log.origin_columns:
            return b""
        image = self.get(key, now_us // 1000)
        return b"" if image is None else origin_of(image, self.log.origin_columns)

    def _append_to_log(self, key: Key, action: Action, row: bytes, now_us: int, origin: bytes) -> None:
        if self.log is None:
            return
        self.log.append(key, action, row, now_us, origin)
        if self.partition_aim == 1 or len(self._rows) < self._next_split or self.log.is_together:
            return
        if len(self.log.open_partitions) < self.partition_aim:
            self._approach_aim(now_us)

    def load(self, rows: Iterable[tuple[Key, bytes, bool]]) -> None:
        """Load stored rows in any order, each with whether some column has several versions."""
        self._rows.load(rows)
        if self.schema.auto_increment is not None:
            # Former releases did not look at values that clients chose.
            for key, _ in self._rows.scan(BOTTOM_KEY, TOP_KEY):
                self._pass_auto_increment(key)

    def as_one_commit(self, *, wanted: bool) -> AbstractContextManager[None]:
        """Give the records of the changes that are executed meanwhile one commit time, if `wanted`."""
        return nullcontext() if self.log is None or not wanted else self.log.together()

    # Partitions

    def enable_stream(self, retention_hours: int, now_us: int, origin_columns: Sequence[str] = ()) -> ChangeLog:
        """Start a new change log; the table is cut into its partitions at this moment."""
        starts = self.partition_starts()
        self.log = ChangeLog(f"{self.name}_{now_us:016d}", retention_hours, now_us, starts, self._listener)
        self.log.origin_columns = tuple(origin_columns)
        return self.log

    def disable_stream(self) -> None:
        """Drop the change log."""
        self.log = None
        self._listener.table_touched(self.name)

    def partition_starts(self) -> list[Key]:
        """Return the starts of the partitions in key order; without a log they are quantiles of the rows."""
        if self.log is not None:
            return [partition.start for partition in self.log.open_partitions]
        if self.fixed.cuts:
            return [BOTTOM_KEY, *((cut_element(cut),) for cut in self.fixed.cuts)]
        return [BOTTOM_KEY, *self.quantiles(self.partition_aim)]

    def change_partition_rows(self, rows: int) -> None:
        """Set how many rows the largest partition must hold before the table splits itself towards its aim."""
        if rows != self._partition_rows:
            self._partition_rows = self._next_split = rows

    def rows_of(self, partition: Partition) -> int:
        """Count the rows within an open partition."""
        first, last = self._span_of(partition)
        return last - first

    def split(self, partition: Partition | None, now_us: int, *, at: Key | None = None) -> list[Partition]:
        """Split a partition near its median, by default the one with most rows of those that can be split, or at a key.

        Returns parent and children.

        Raises:
            Refusal: no log, the partition is closed or has the rows of fewer than two partition keys, or `at` lies
                outside of it or is no value of the partition key.
        """
        log = self.log
        if log is None:
            raise parameter_invalid(f"table {self.name!r} has no stream, so its partitions have no history to split")
        if at is not None:
            check_split_key(self.schema, at)
        if partition is None:
            partition = self._largest_of(log) if at is None else log.locate(at)
        if partition.closed_us is not None:
            raise parameter_invalid(f"partition {partition.id} is closed")
        if at is None:
            at = self._middle_of(partition)
        if at is None:
            text = f"partition {partition.id} cannot be split: its rows have fewer than 2 partition keys"
            raise parameter_invalid(text)
        end = log.end_of(partition)
        if at <= partition.start or (end is not None and at >= end):
            raise parameter_invalid(f"split key lies outside of partition {partition.id}")
        children = log.split(partition, at, now_us)
        self._on_children(self.name, children)
        return [partition, *children]

    def merge(self, left: Partition | None, now_us: int) -> list[Partition]:
        """Merge a partition with its successor, by default the neighbours with fewest rows; return parents and child.

        Raises:
            Refusal: no log, or the partition is closed or the last one.
        """
        log = self.log
        if log is None:
            raise parameter_invalid(f"table {self.name!r} has no stream, so its partitions have no history to merge")
        neighbours = list(pairwise(log.open_partitions))
        if left is None and neighbours:
            left, _ = min(neighbours, key=lambda pair: self.rows_of(pair[0]) + self.rows_of(pair[1]))
        right = next((second for first, second in neighbours if first is left), None)
        if left is None or right is None:
            which = "the table has one partition" if left is None else f"no open partition follows {left.id}"
            raise parameter_invalid(f"nothing to merge in table {self.name!r}: {which}")
        child = log.merge(left, right, now_us)
        self.partition_aim = min(self.partition_aim, len(log.open_partitions))
        self._on_children(self.name, (child,))
        return [left, right, child]

    def quantiles(self, parts: int) -> list[Key]:
        """Return up to `parts` - 1 existing partition keys that cut the rows into about equal parts."""
        return quantiles(self._rows, parts)

    def _largest_of(self, log: ChangeLog) -> Partition:
        """Return the partition with most rows of those that can be split, or of all where none can."""
        largest_first = sorted(log.open_partitions, key=self.rows_of, reverse=True)
        return next(filter(self._middle_of, largest_first), largest_first[0])

    def _middle_of(self, partition: Partition) -> Key | None:
        return middle(self._rows, *self._span_of(partition))

    def _span_of(self, partition: Partition) -> tuple[int, int]:
        end = self.log.end_of(partition) if self.log is not None else None
        last = len(self._rows) if end is None else self._rows.index(end)
        return self._rows.index(partition.start), last

    def _approach_aim(self, now_us: int) -> None:
        assert self.log is not None
        for partition in sorted(self.log.open_partitions, key=self.rows_of, reverse=True):
            if self.rows_of(partition) < self._partition_rows:
                break
            at = self._middle_of(partition)
            if at is not None:
                self.split(partition, now_us, at=at)
                break
        # Checked once per quarter of a partition: for every row it would cost too much, per doubling it would lag.
        self._next_split = len(self._rows) + max(1, self._partition_rows // 4)
