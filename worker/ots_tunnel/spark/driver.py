"""The driver program of a snapshot: copies every row of a table, with all versions, into another table.

    python -m ots_tunnel.spark.driver --config /etc/ots/snapshot.yaml

Theory of operation
-------------------

The driver is one of two writers of a mirror. The operator starts it after the Stream tunnel has tokens, and starts the
workers that follow the stream only after the driver has finished (docs/architecture.md 3.3). Three parts take part:

    driver      this program: reads the record, freezes the splits, runs one Spark job, records finished splits
    record      ConfigMap `<name>-snapshot` (`ots_tunnel.snapshot.record`): frozen splits and a bitmap of finished ones
    tasks       one per split, on executors: `source` reads the split with GetRange, `copying` writes it

The steps, in this order:

1. Load the record. A record with another label belongs to another copy and is ignored.
2. Freeze the splits, only if the record has none: ask the service for split points and store the list before the
   first GetRange. The list never changes afterwards, because the service cuts a growing table elsewhere tomorrow, and
   a finished split must stay the same key range.
3. Run one job over the splits that are not recorded as done.
4. While the job runs, look for finished splits every `RECORD_SECONDS` (1 s: the record allows one write a second) and
   record them. Calls of the record have their own thread: each look also asks whether tasks may still start, which
   ends once the record was not confirmed for too long (`progress`), also where a call hangs.
5. When the job has ended, record the splits of its result, and end with exit code 0 only if every split is recorded.

A split counts as finished when its task has written all rows and Spark has accepted the task's result. Spark reports
it twice, and both reports are needed. The accumulator reports during the job, so that a killed driver loses at most a
second of progress; Spark delivers its updates asynchronously, so the last ones may be missing when `collect` returns.
The collected rows are complete but arrive only at the end, and never if the job fails. The set union makes a split
that is reported twice, or by a retried task, count once.

Failures, by priority:

    OwnershipLost           another driver wrote the record, or could have been started: cancel the job, exit code 1
    a task fails for good   record what is finished, exit code 1; Spark has tried the task `spark.task.maxFailures`
                            times before (the operator sets 8)
    API server unavailable  log a warning and try again with the next look; the job keeps running, for 90 s. Before
                            and after the job there is no next look: exit code 1
    driver killed           the application is started again by its restart policy and resumes at step 1

Example: 5 splits are frozen, splits 0 and 3 are recorded, the driver pod is evicted. The new driver loads the record,
finds 5 splits with the bitmap 0b01001, and runs a job over 1, 2 and 4. Rows of split 1 that the first driver had
already written are written again: puts of whole rows and updates, both with versions, are idempotent. A task of the
first driver may even write beside the new one (`copying`).

Exit codes: 0 every split is recorded as done, 1 the snapshot can be tried again, 2 the document or the pod is wrong.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.accumulators import AccumulatorParam

from ots_tunnel.client.table import SyncTableClient
from ots_tunnel.credentials import FileCredentials
from ots_tunnel.errors import ConfigError, OwnershipLost, TunnelError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.logs import set_up_logs
from ots_tunnel.snapshot.document import SnapshotConfig, load_snapshot_config
from ots_tunnel.snapshot.splits import freeze, most_splits, split_list
from ots_tunnel.spark import register
from ots_tunnel.spark.cluster import ConfigMaps, in_cluster
from ots_tunnel.spark.copying import RESULT_SCHEMA, CopyTask, Finished
from ots_tunnel.spark.pending import write_pending
from ots_tunnel.spark.progress import WRITE_PAUSE, ProgressRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds between two looks at finished splits: as often as the record may be written.
RECORD_SECONDS = WRITE_PAUSE

#: Seconds between two progress lines in the log.
LOG_SECONDS = 10.0

#: Seconds between two calls that cancel the job.
CANCEL_SECONDS = 1.0

#: Characters of a failed job's error that are logged; Spark joins whole stack traces into it.
ERROR_CHARACTERS = 500

logger = logging.getLogger(__name__)


class SplitCounts(AccumulatorParam):  # type: ignore[misc]  # pyspark has no types we follow
    """Finished splits with their omitted cells; grows by union, so that a split reported twice counts once."""

    def zero(self, value: Mapping[int, int]) -> Mapping[int, int]:
        """No split."""
        return {}

    def addInPlace(self, value1: Mapping[int, int], value2: Mapping[int, int]) -> Mapping[int, int]:
        """The union of both."""
        return {**value1, **value2}


class Report:
    """Adds a finished split to an accumulator; Spark delivers it after the task has succeeded."""

    def __init__(self, accumulator: Any) -> None:
        self._accumulator = accumulator

    def __call__(self, finished: Finished) -> None:
        """Report that every row of a split is stored."""
        self._accumulator.add({finished.split: finished.omitted})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(prog="snapshot", description="Copy every row of a table into another table.")
    parser.add_argument("--config", type=Path, required=True, help="snapshot document (YAML)")
    flags = parser.parse_args(arguments)
    set_up_logs()
    # Spark's bridge to the JVM logs every call at INFO.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        config = load_snapshot_config(flags.config)
        config_maps = ConfigMaps(in_cluster(), config.progress.namespace)
    except ConfigError as error:
        logger.error("%s", error, extra={"action": LogAction.TERMINAL_ERROR})
        return 2
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName(f"ots-snapshot {config.source.table}").getOrCreate()
    try:
        run(config, spark, config_maps)
    except (TunnelError, SnapshotIncomplete) as error:
        logger.error("%s", error, extra={"action": LogAction.TERMINAL_ERROR})
        return 1
    finally:
        spark.stop()
    return 0


class SnapshotIncomplete(Exception):
    """The job failed or left splits pending; finished splits are recorded."""


def run(config: SnapshotConfig, spark: SparkSession, config_maps: ConfigMaps) -> None:
    """Copy the splits that are not recorded as done; return when every split is recorded.

    Raises:
        SnapshotIncomplete: a task failed for good.
        OwnershipLost: another driver of this snapshot is running.
        ServiceError, TransportError: the source or the API server does not answer.
    """
    record = ProgressRecord(config_maps, config.progress, write_deadline=config.write_deadline_seconds)
    record.load()
    if record.splits is None:
        freeze_splits(config, record)
    assert record.splits is not None
    pending = [index for index in range(len(record.splits)) if index not in record.done]
    logger.info("%d of %d splits to copy", len(pending), len(record.splits), extra={"action": LogAction.STARTED})
    if pending:
        copy_splits(config, spark, record, pending)
    if len(record.done) != len(record.splits):
        raise SnapshotIncomplete(f"{len(record.done)} of {len(record.splits)} splits are done")
    logger.info("all %d splits are done", len(record.splits), extra={"action": LogAction.COMPLETED})
    if record.omitted:
        logger.warning(
            "%d cells were left out: they are past the destination's time to live",
            record.omitted,
            extra={"action": LogAction.COMPLETED},
        )
    if record.omitted is None:
        logger.warning(
            "cells past the destination's time to live may have been left out: an earlier release did not count them",
            extra={"action": LogAction.COMPLETED},
        )


def freeze_splits(config: SnapshotConfig, record: ProgressRecord) -> None:
    """Ask the service for splits and store them, before the first row is read."""
    source, unit = config.source, config.splits.bytes_per_split
    client = SyncTableClient(source.endpoint, source.instance, FileCredentials(source.credentials.directory))
    try:
        ranges = client.compute_splits(source.table, unit_bytes=unit)
    finally:
        client.close()
    record.freeze(*freeze(split_list(ranges), max_splits=most_splits(len(ranges), unit)))


def copy_splits(config: SnapshotConfig, spark: SparkSession, record: ProgressRecord, pending: Sequence[int]) -> None:
    """Run one job over the pending splits and record finished ones while it runs.

    Raises:
        SnapshotIncomplete: the job failed; splits that finished before are recorded.
        OwnershipLost: another driver of this snapshot is running; the job is cancelled.
    """
    assert record.splits is not None
    register(spark)
    done = spark.sparkContext.accumulator({}, SplitCounts())
    with (
        tempfile.TemporaryDirectory(prefix="splits-") as folder,
        ThreadPoolExecutor(1, thread_name_prefix="job") as jobs,
    ):
        write_pending(Path(folder), record.splits, pending)
        reader = spark.read.format("ots").option("mode", "raw").option("splitsDirectory", folder)
        reader = reader.option("endpoint", config.source.endpoint).option("instance", config.source.instance)
        reader = reader.option("credentialsDirectory", str(config.source.credentials.directory))
        rows = reader.option("table", config.source.table).load()
        frame = rows.mapInArrow(CopyTask(config, Report(done)), RESULT_SCHEMA)
        record.check()
        job = jobs.submit(frame.collect)
        try:
            finished = follow(job, lambda: done.value, record)
        finally:
            end(job, spark.sparkContext.cancelAllJobs)
    # The accumulator's last updates may still be on their way; the collected rows name every finished split.
    record.mark({split: omitted for split, _, omitted in finished})
    logger.info("copied %d rows", sum(rows for _, rows, _ in finished), extra={"action": LogAction.COMPLETED})


def follow(job: Future[Any], done: Callable[[], Mapping[int, int]], record: ProgressRecord) -> Any:
    """Record finished splits until the job ends; return its result.

    Raises:
        SnapshotIncomplete: the job failed.
        OwnershipLost: another driver is running, or may be: no task may start any more.
    """
    assert record.splits is not None
    total, logged = len(record.splits), time.monotonic()
    writer = ThreadPoolExecutor(1, thread_name_prefix="record")
    try:
        writing = writer.submit(_try_mark, record, done())
        while not wait([job], timeout=RECORD_SECONDS).done:
            record.check()
            if writing.done():
                writing.result()
                writing = writer.submit(_try_mark, record, done())
            if time.monotonic() - logged >= LOG_SECONDS:
                logged = time.monotonic()
                logger.info(
                    "%d of %d splits are done", len(record.done), total, extra={"action": LogAction.SNAPSHOT_PROGRESS}
                )
        writing.result()
    finally:
        # a call that hangs must not hold up the end of the job
        writer.shutdown(wait=False)
    if (error := job.exception()) is not None:
        # Finished splits stay finished, whatever error Spark raises.
        _try_mark(record, done())
        raise SnapshotIncomplete(f"the job failed: {_first_line(error)}") from error
    return job.result()


def end(job: Future[Any], cancel: Callable[[], None]) -> None:
    """Cancel a job until it has ended: one that is still being planned does not hear the first call."""
    while not job.done():
        cancel()
        wait([job], timeout=CANCEL_SECONDS)


def _try_mark(record: ProgressRecord, done: Mapping[int, int]) -> None:
    """Record finished splits; if the API server does not answer, the next look tries again."""
    try:
        record.mark(done)
    except OwnershipLost:
        raise
    except TunnelError as error:
        logger.warning("progress is not recorded: %s", error, extra={"action": LogAction.SNAPSHOT_PROGRESS})


def _first_line(error: BaseException) -> str:
    """The last line that names an error of this package, otherwise the first line of Spark's text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("ots_tunnel.errors.")]
    line = ours[-1] if ours else (lines or [type(error).__name__])[0]
    return line[:ERROR_CHARACTERS]


if __name__ == "__main__":
    sys.exit(main())
