"""One task of the snapshot: write the raw rows of its split to the destination and report the split.

Runs on executors as the function of `DataFrame.mapInArrow`. The rows arrive from the reader's process through the
JVM, so reading and writing overlap.

Cells past the destination's time to live would be refused and are left out. A time to live may be raised while a task
runs, and its split is never read again. So the task describes the destination once more before it reports a split with
omissions; if cells live longer by now, it fails, and is started again.

Fencing by time (docs/architecture.md rule 4): a task sends nothing later than its start + deadline - D. A task that
was paused longer fails and is retried, so it cannot overwrite changes that the workers write after the snapshot.

Nothing keeps two attempts of one split apart: Spark starts a task again as soon as its executor seems lost, while the
earlier attempt, or a request of it, is still under way. The later attempt may have reported the split by then. So a
change of either one must do no harm after any change of the other. A put of all cells does none: what the source
changed between both reads is in the stream, and is repeated. A put of some cells of a row would remove the remaining
ones for good. Such rows go out as updates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ots_tunnel.errors import OwnershipLost, SinkError
from ots_tunnel.fence import boottime
from ots_tunnel.model import Action
from ots_tunnel.snapshot.document import SnapshotConfig

if TYPE_CHECKING:
    import pyarrow as pa

    from ots_tunnel.sinks.table.blocking_writer import SyncTableWriter
    from ots_tunnel.sinks.table.row_change import Change

#: Schema of a task's result: one row per finished split, as `Finished`.
RESULT_SCHEMA = "split BIGINT, rows BIGINT, omitted BIGINT"


class Finished(NamedTuple):
    """A split of which everything is stored."""

    split: int
    rows: int
    """Row changes that were written."""
    omitted: int
    """Cells that were left out, because they are past the destination's time to live."""


class TaskFence:
    """The time limit of one task, counted from the creation of this object.

    Args:
        deadline: seconds after the start when the last write must be over.
        write_deadline: D, seconds that one write may take.
        clock: monotonic seconds, suspended time included.
    """

    def __init__(self, deadline: float, write_deadline: float, clock: Callable[[], float] = boottime) -> None:
        self._deadline = deadline
        self._until = clock() + deadline - write_deadline
        self._clock = clock

    def __repr__(self) -> str:
        return f"TaskFence(left={self._until - self._clock():.3f})"

    def check(self) -> None:
        """Check that a write may start now.

        Raises:
            OwnershipLost: the task is too old and must be started again.
        """
        if self._clock() >= self._until:
            raise OwnershipLost(f"the split was not copied within {self._deadline:g} s: it must be started again")


class CopyTask:
    """Function of the snapshot's tasks, pickled to the executors.

    Args:
        config: the driver's document; credentials are read from files on the executor.
        report: called with every split after all its rows are stored.
    """

    def __init__(self, config: SnapshotConfig, report: Callable[[Finished], None]) -> None:
        self._config = config
        self._report = report

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows of each split up to its empty end row; yield one result per split."""
        from ots_tunnel.client.table import SyncTableClient
        from ots_tunnel.credentials import FileCredentials
        from ots_tunnel.logs import set_up_logs
        from ots_tunnel.spark.columns import COLUMN_TYPES, build_batch

        sink = self._config.sink.tablestore
        assert sink is not None, "the document was checked"
        set_up_logs()  # executors have none, and a write that is retried would warn each time
        fence = TaskFence(self._config.splits.deadline_seconds, self._config.write_deadline_seconds)
        client = SyncTableClient(sink.endpoint, sink.instance, FileCredentials(sink.credentials.directory))
        try:
            writer = SplitWriter(self._config, client, fence)
            for finished in writer.run(batches):
                self._report(finished)
                integers = COLUMN_TYPES["bigint"]
                yield build_batch([(name, integers, [value]) for name, value in finished._asdict().items()])
        finally:
            client.close()


class SplitWriter:
    """Writes the rows of splits to the destination.

    Args:
        config: the driver's document.
        client: connections to the destination's instance.
        fence: checked before every request.
        now: clock, Unix seconds.
    """

    def __init__(
        self, config: SnapshotConfig, client: Any, fence: TaskFence, now: Callable[[], float] = time.time
    ) -> None:
        from ots_tunnel.sinks.grouping import Limits
        from ots_tunnel.sinks.table.row_change import Omissions

        sink = config.sink.tablestore
        assert sink is not None, "the document was checked"
        self._config = config
        self._client = client
        self._table = sink.table
        self._fence = fence
        self._now = now
        self._limits = Limits(config.delivery.batch_max_rows, config.delivery.batch_max_bytes)
        self._omissions = Omissions()
        self._time_to_live = self._describe()

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Finished]:
        """Yield each split after all of it is stored.

        Raises:
            OwnershipLost: the task is too old.
            SinkError: cells that were left out live again.
            SinkRejected: the destination rejects rows.
            EOFError: the last split has no end row.
        """
        writer = self._writer()
        stored = omitted = 0
        rows = _Rows(batches)
        while rows.advance():
            try:
                total = writer.write(self._changes(rows)).rows
            except OwnershipLost as error:
                raise OwnershipLost(
                    f"split {rows.current}: {error}, with {writer.counts.rows - stored} row changes written: "
                    "if no attempt is in time, the destination is too slow for its size (docs/spark.md)"
                ) from error
            if rows.ended is None:
                raise EOFError("the rows of a split ended without its end row")
            cells = self._omissions.expired_cells - omitted
            if cells:
                self._check_omissions(cells)
            yield Finished(rows.ended, total - stored, cells)
            stored, omitted = total, omitted + cells

    def _describe(self) -> int:
        return int(self._client.describe_table(self._table).time_to_live)

    def _check_omissions(self, cells: int) -> None:
        """Every row was read before this description: what is past its time to live now was rightly left out."""
        before, now = self._time_to_live, self._describe()
        if before != -1 and (now == -1 or now > before):
            raise SinkError(
                f"{cells} cells past the destination's time to live of {before} s were left out, "
                f"but it was changed to {now} s meanwhile: the split must be started again"
            )

    def _writer(self) -> SyncTableWriter:
        from ots_tunnel.sinks.table.blocking_writer import SyncTableWriter

        return SyncTableWriter(
            self._client,
            self._table,
            self._limits,
            self._config.delivery.retry,
            self._fence,
            deadline=self._config.write_deadline_seconds,
        )

    def _changes(self, rows: _Rows) -> Iterator[Change]:
        from ots_tunnel.protocol.record import Record
        from ots_tunnel.sinks.table.row_change import changes_of, expired_before_ms

        for body in rows.of_split():
            # A row of the source equals the result of a put of all its cells (docs/architecture.md 4.1).
            record, limit_ms = Record(Action.PUT, body), expired_before_ms(self._time_to_live, self._now())
            yield from changes_of(record, self._limits, self._omissions, limit_ms, may_overlap=True)


class _Rows:
    """Cuts the stream of raw batches at the empty rows that end the splits."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._cells = self._flatten(batches)
        self._first: tuple[int, bytes] | None = None
        #: Index of the current split, None before the first.
        self.current: int | None = None
        #: Index of the current split once its end row was read, None before.
        self.ended: int | None = None

    def advance(self) -> bool:
        """Move to the next split; return False if there is none."""
        self.ended = None
        self._first = next(self._cells, None)
        if self._first is not None:
            self.current = self._first[0]
        return self._first is not None

    def of_split(self) -> Iterator[bytes]:
        """Rows of the current split, without its end row."""
        cell = self._first
        while cell is not None:
            split, row = cell
            if not row:
                self.ended = split
                return
            yield row
            cell = next(self._cells, None)

    @staticmethod
    def _flatten(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
        for batch in batches:
            yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
