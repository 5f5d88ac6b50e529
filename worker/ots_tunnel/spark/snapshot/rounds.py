"""One round of the snapshot: a Spark job with a task for each of some splits, and the record of what they copied.

While the job runs, the driver looks for results every `RECORD_SECONDS` (1 s: the record allows one write a second) and
records them. Calls of the record have their own thread: each look also asks whether tasks may still start, which ends
once the record was not confirmed for too long (`progress`), also where a call hangs.

A result counts when Spark has accepted it. Spark reports it twice, and both reports are needed. The accumulator reports
during the job, so that a killed driver loses at most a second of progress. Spark delivers its updates asynchronously,
so the last ones may be missing when `collect` returns. The collected results are complete but arrive only at the end,
and never if the job fails. A report that comes twice counts once (`ots_tunnel.snapshot.copied`).

A round has some tasks for each core, not all splits: splits that are copied in part are finished before others begin,
so that few cursors have to be recorded. While the last tasks of a round end, other cores wait: with `TASKS_PER_CORE`
(16) that costs a few percent where tasks are short, and nothing where all take their slice of time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from pyspark.accumulators import AccumulatorParam

from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.credentials import FileCredentials
from ots_tunnel.errors import OwnershipLost, ServiceError, TunnelError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.snapshot.copied import Report
from ots_tunnel.snapshot.cursors import MAX_BYTES
from ots_tunnel.snapshot.document import SnapshotConfig
from ots_tunnel.snapshot.splits import Split, SplitList
from ots_tunnel.spark.failures import Refusal, SnapshotIncomplete, SnapshotRefused, is_final, line_of_job, one_line
from ots_tunnel.spark.snapshot.copying import CopyTask
from ots_tunnel.spark.snapshot.progress import WRITE_PAUSE, ProgressRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Tasks of a round for each core of the executors, see above.
TASKS_PER_CORE: Final = 16

#: Least bytes that a cursor is expected to take, for the number of tasks.
CURSOR_BYTES: Final = 64

#: Seconds between two looks at results: as often as the record may be written.
RECORD_SECONDS = WRITE_PAUSE

#: Seconds between two progress lines in the log.
LOG_SECONDS = 10.0

#: Seconds between two calls that cancel the job.
CANCEL_SECONDS = 1.0

logger = logging.getLogger(__name__)

#: Results of a round by their split; there is one task for each.
Results = Mapping[int, Report | Refusal]


class ResultsParam(AccumulatorParam):  # type: ignore[misc]  # pyspark has no types we follow
    """Results of tasks; grows by union, so that one that is reported twice counts once."""

    def zero(self, value: Results) -> Results:
        """No result."""
        return {}

    def addInPlace(self, value1: Results, value2: Results) -> Results:
        """The union of both."""
        return {**value1, **value2}


class Reporter:
    """Adds a result to an accumulator; Spark delivers it after the task has succeeded."""

    def __init__(self, accumulator: Any) -> None:
        self._accumulator = accumulator

    def __call__(self, result: Report | Refusal) -> None:
        """Report how far a task came."""
        self._accumulator.add({result.split: result})


def round_size(cores: int, splits: SplitList) -> int:
    """Tasks of a round: at least one, and no more than their cursors have room in the record."""
    longest = max(map(len, splits.boundaries), default=0)
    return max(1, min(TASKS_PER_CORE * cores, MAX_BYTES // max(CURSOR_BYTES, longest)))


def copy_round(config: SnapshotConfig, spark: SparkSession, record: ProgressRecord, pending: Sequence[Split]) -> None:
    """Run one job over the first of the pending splits and record what they copied.

    Raises:
        SnapshotIncomplete: the job failed, a task met a permanent error, or the source is gone; what was copied is
            recorded.
        OwnershipLost: another driver of this snapshot is running, or may be; the job is cancelled.
        ServiceError, TransportError: the source does not answer.
    """
    assert record.splits is not None
    context = spark.sparkContext
    results = context.accumulator({}, ResultsParam())
    task = CopyTask(config, _max_versions(config), Reporter(results))
    splits = pending[: round_size(context.defaultParallelism, record.splits)]
    tasks = context.parallelize(splits, len(splits)).mapPartitions(task)
    with ThreadPoolExecutor(1, thread_name_prefix="job") as jobs:
        record.check()
        job = jobs.submit(tasks.collect)
        try:
            collected = follow(job, lambda: results.value, record)
        finally:
            end(job, context.cancelAllJobs)
            results.value = {}  # Spark keeps accumulators as long as the session
    # The accumulator's last updates may still be on their way; the collected results name every task.
    found = {result.split: result for result in collected}
    while not _try_take(record, found):
        record.check()
        time.sleep(RECORD_SECONDS)


def _max_versions(config: SnapshotConfig) -> int:
    """Versions that the source keeps now.

    Raises:
        SnapshotRefused: the source is gone. ServiceError, TransportError: it cannot be described.
    """
    source = config.source
    credentials = FileCredentials(source.credentials.directory)
    with closing(SyncTableClient(source.endpoint, source.instance, credentials)) as client:
        try:
            return client.describe_table(source.table).max_versions
        except ServiceError as error:
            if is_final(error):
                raise SnapshotRefused(one_line(f"source table {source.table!r}: {error}")) from error
            raise


def take(record: ProgressRecord, results: Results) -> None:
    """Record results.

    Raises:
        SnapshotIncomplete: a permanent error is among them; what was copied is recorded.
        OwnershipLost, ServiceError, TransportError: see `ProgressRecord.mark`.
    """
    record.mark([result for result in results.values() if isinstance(result, Report)])
    refusals = [result for result in results.values() if isinstance(result, Refusal)]
    if refusals:
        # one that is final ends the copy, and may stand beside others
        raise max(refusals, key=lambda refusal: refusal.is_final).error()


def follow(job: Future[Any], results: Callable[[], Results], record: ProgressRecord) -> Any:
    """Record results until the job ends; return what it returned.

    Raises:
        SnapshotIncomplete: the job failed, or a task met a permanent error.
        OwnershipLost: another driver is running, or may be: no task may start any more.
    """
    assert record.splits is not None
    total, logged = len(record.splits), time.monotonic()
    writer = ThreadPoolExecutor(1, thread_name_prefix="record")
    try:
        writing = writer.submit(_try_take, record, results())
        while not wait([job], timeout=RECORD_SECONDS).done:
            record.check()
            if writing.done():
                writing.result()
                writing = writer.submit(_try_take, record, results())
            if time.monotonic() - logged >= LOG_SECONDS:
                logged = time.monotonic()
                logger.info(
                    "%d of %d splits are done",
                    len(record.copied.done),
                    total,
                    extra={"action": LogAction.SNAPSHOT_PROGRESS},
                )
        writing.result()
    finally:
        # a call that hangs must not hold up the end of the job
        writer.shutdown(wait=False)
    if (error := job.exception()) is not None:
        # What is copied stays copied, whatever error Spark raises.
        _try_take(record, results())
        raise SnapshotIncomplete(f"the job failed: {line_of_job(error)}") from error
    return job.result()


def end(job: Future[Any], cancel: Callable[[], None]) -> None:
    """Cancel a job until it has ended: one that is still being planned does not hear the first call."""
    while not job.done():
        cancel()
        wait([job], timeout=CANCEL_SECONDS)


def _try_take(record: ProgressRecord, results: Results) -> bool:
    """Record results; False if the API server does not answer, so that the next look tries again."""
    try:
        take(record, results)
    except OwnershipLost:
        raise
    except TunnelError as error:
        logger.warning("progress is not recorded: %s", error, extra={"action": LogAction.SNAPSHOT_PROGRESS})
        return False
    return True
