"""One task of the snapshot: copies a part of its split, in one process, and reports how far it came. On executors.

A task reads pages with GetRange, one page ahead, and writes their rows; they do not pass through the JVM. It takes its
split from where it stands, and ends after a slice of time, or with the split. What it reports is where the split
resumes: in the next round of the driver, after a deadline, in a retry of Spark, and for another driver. So an
attempt that is lost costs a slice, and a split of any size is finished in some number of them.

Cells past the destination's time to live would be refused and are left out. A time to live may be raised while a task
runs, and its rows are never read again. So the task describes the destination once more before it reports rows with
omissions; if cells live longer by now, it fails, and is started again. Cells also pass their time to live while a busy
destination lets a request wait, and it may be lowered. So a refusal is for good only if no cell that was sent is past
the time to live by then; otherwise the task fails as well, and the next one leaves these cells out. The source may be
told to keep more versions meanwhile, and older versions of its rows are in no stream. So the task describes the source
after its rows, and reads them again where it kept more than was asked for.

Fencing by time (docs/architecture.md rule 4): a task sends nothing later than its start + deadline - D. A task that
was paused longer sends no more, so it cannot overwrite changes that the workers write after the snapshot.

Nothing keeps two attempts of one split apart: Spark starts a task again as soon as its executor seems lost, while the
earlier attempt, or a request of it, is still under way. The later attempt may have reported the rows by then. So a
change of either one must do no harm after any change of the other. A put of all cells does none: what the source
changed between both reads is in the stream, and is repeated. A put of some cells of a row would remove the remaining
ones for good. Such rows go out as updates.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.config import InstanceConfig
from ots_tunnel.credentials import FileCredentials
from ots_tunnel.errors import OwnershipLost, ParameterInvalid, SinkError, SinkRejected, TunnelError
from ots_tunnel.fence import boottime
from ots_tunnel.log_actions import LogAction
from ots_tunnel.logs import set_up_logs
from ots_tunnel.model import Action
from ots_tunnel.protocol.record import Record
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.sinks.grouping import Limits
from ots_tunnel.sinks.table.blocking_writer import SyncTableWriter
from ots_tunnel.sinks.table.row_change import (
    Change,
    Omissions,
    changes_of,
    expired_before_ms,
    has_expired,
    unaltered_change,
)
from ots_tunnel.sinks.table.service_clock import ServiceClock
from ots_tunnel.sinks.table.waves import plan_requests
from ots_tunnel.snapshot.copied import Report
from ots_tunnel.snapshot.document import SnapshotConfig
from ots_tunnel.snapshot.splits import Split
from ots_tunnel.spark.failures import Refusal, one_line, refusal_of
from ots_tunnel.spark.reader.reading import Reading, read_ahead
from ots_tunnel.spark.snapshot.requests import rows_of_requests

logger = logging.getLogger(__name__)

#: Seconds after which a task reports what it has copied, and ends: what an attempt that is lost costs. Own choice.
SLICE_SECONDS: Final = 60.0


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
        #: Seconds of a slice: rows that have to be read again need a second one.
        self.slice_seconds = min(SLICE_SECONDS, (deadline - write_deadline) / 2)

    def __repr__(self) -> str:
        return f"TaskFence(left={self._until - self._clock():.3f})"

    def check(self) -> None:
        """Check that a write may start now.

        Raises:
            OwnershipLost: the task is too old and must be started again.
        """
        if self._clock() >= self._until:
            raise OwnershipLost(f"no request was stored within {self._deadline:g} s: the task must be started again")

    def end_of_slice(self) -> Callable[[], bool]:
        """Begin a slice; the function says whether it is over."""
        until = self._clock() + self.slice_seconds
        return lambda: self._clock() >= until


class CopyTask:
    """Function of the snapshot's tasks, pickled to the executors.

    Args:
        config: the driver's document; credentials are read from files on the executor.
        max_versions: versions that the source keeps.
        report: called with the result of each split.
    """

    def __init__(self, config: SnapshotConfig, max_versions: int, report: Callable[[Report | Refusal], None]) -> None:
        self._config = config
        self._max_versions = max_versions
        self._report = report

    def __call__(self, splits: Iterable[Split]) -> Iterator[Report | Refusal]:
        """Copy a part of each split; yield one result per split.

        A permanent error is a result: Spark would start a task that raises it again, in vain.
        """
        set_up_logs()  # executors have none, and a write that is retried would warn each time
        for split in splits:
            result: Report | Refusal
            try:
                result = self._copy(split)
            except TunnelError as error:
                refusal = refusal_of(split.index, error)
                if refusal is None:
                    raise
                result = refusal
            self._report(result)
            yield result

    def _copy(self, split: Split) -> Report:
        sink = self._config.sink.tablestore
        assert sink is not None, "the document was checked"
        fence = TaskFence(self._config.splits.deadline_seconds, self._config.write_deadline_seconds)
        with closing(_client(self._config.source)) as source, closing(_client(sink)) as destination:
            return SplitCopy(self._config, source, destination, fence).run(split, self._max_versions)


class SplitCopy:
    """Copies a part of one split.

    Args:
        config: the driver's document.
        source: connections to the source's instance.
        destination: connections to the destination's instance.
        fence: checked before every write.
        now: clock of this machine, Unix seconds.
    """

    def __init__(
        self,
        config: SnapshotConfig,
        source: Any,
        destination: Any,
        fence: TaskFence,
        now: Callable[[], float] = time.time,
    ) -> None:
        sink = config.sink.tablestore
        assert sink is not None, "the document was checked"
        self._config = config
        self._source = source
        self._client = destination
        self._table = sink.table
        self._fence = fence
        self._now = ServiceClock(now)
        self._limits = Limits(config.delivery.batch_max_rows, config.delivery.batch_max_bytes)
        self._time_to_live = self._describe()

    def run(self, split: Split, max_versions: int) -> Report:
        """Copy the split until a slice of time is over; what is reported is stored.

        An error after the first rows ends the slice before it: if it is a permanent one, the next task meets it first.

        Raises:
            OwnershipLost: the task is too old, and nothing was stored.
            SinkError: cells that were left out live again.
            SinkRejected: the destination rejects rows.
            ServiceError, TransportError: source or destination do not answer.
        """
        while True:
            report = self._slice(split, max_versions)
            found = self._source.describe_table(self._config.source.table).max_versions
            if found <= max_versions:
                break
            max_versions = found
        if report.omitted:
            self._check_omissions(report.omitted)
        return report

    def _slice(self, split: Split, max_versions: int) -> Report:
        is_over, writer, omissions = self._fence.end_of_slice(), self._writer(), Omissions()
        report = Report(split.index, split.start, split.start, 0, 0)
        reading = Reading(self._config.source.table, max_versions=max_versions)
        with closing(read_ahead(reading.pages(self._source, [(split.start, split.end)]))) as pages:
            try:
                for rows, following in rows_of_requests(pages, self._limits):
                    self._write(writer, rows, omissions)
                    report = Report(split.index, split.start, following, writer.counts.rows, omissions.expired_cells)
                    if is_over():
                        break
            except TunnelError as error:
                if report.cursor == split.start:
                    raise
                text, extra = one_line(error), {"action": LogAction.SNAPSHOT_PROGRESS}
                logger.warning("split %d is copied in part: %s", split.index, text, extra=extra)
        return report

    def _write(self, writer: SyncTableWriter, rows: Sequence[bytes], omissions: Omissions) -> None:
        # A row of the source equals the result of a put of all its cells (docs/architecture.md 4.1).
        records = [Record(Action.PUT, row) for row in rows]
        waves = plan_requests(records, self._limits) if self._time_to_live == -1 else None
        changes = list(self._changes(records, omissions)) if waves is None else []
        try:
            writer.write(changes)
            for wave in waves or ():
                writer.repeat(wave)
        except SinkRejected as refusal:
            if self._has_expired(refusal, changes or map(unaltered_change, records)):
                raise SinkError(
                    f"cells have passed the destination's time to live on their way: {refusal}"
                ) from refusal
            raise

    def _has_expired(self, refusal: SinkRejected, sent: Iterable[Change]) -> bool:
        """Whether a cell that was sent is past the time to live by now, which may have been lowered meanwhile."""
        if not isinstance(service_error(refusal.code, refusal.message), ParameterInvalid):
            return False
        limit_ms = expired_before_ms(self._describe(), self._now())
        return limit_ms is not None and any(has_expired(change, limit_ms) for change in sent)

    def _describe(self) -> int:
        found = self._client.describe_table(self._table)
        self._now.heard(found.service_time)
        return int(found.time_to_live)

    def _check_omissions(self, cells: int) -> None:
        """Every row was read before this description: what is past its time to live now was rightly left out."""
        before, now = self._time_to_live, self._describe()
        if before != -1 and (now == -1 or now > before):
            raise SinkError(
                f"{cells} cells past the destination's time to live of {before} s were left out, "
                f"but it was changed to {now} s meanwhile: the split must be started again"
            )

    def _writer(self) -> SyncTableWriter:
        return SyncTableWriter(
            self._client,
            self._table,
            self._limits,
            self._config.delivery.retry,
            self._fence,
            deadline=self._config.write_deadline_seconds,
        )

    def _changes(self, records: Iterable[Record], omissions: Omissions) -> Iterator[Change]:
        for record in records:
            limit_ms = expired_before_ms(self._time_to_live, self._now())
            yield from changes_of(record, self._limits, omissions, limit_ms, may_overlap=True)


def _client(place: InstanceConfig) -> SyncTableClient:
    return SyncTableClient(place.endpoint, place.instance, FileCredentials(place.credentials.directory))
