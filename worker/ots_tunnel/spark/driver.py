"""The driver program of a snapshot: copies every row of a table, with all versions, into another table.

    python -m ots_tunnel.spark.driver --config /etc/ots/snapshot.yaml

Order (design: snapshot before stream): the record of progress is read; where it has no split list of this label, the
list is asked for and stored before the first GetRange; then one Spark job reads and writes the splits that are not
done. Finished splits are recorded while the job runs, at most one write a second. A driver that is started again
with the same label goes on with what is left.

Exit codes: 0 every split is recorded as done, 1 it can be tried again, 2 the document or the pod is wrong.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
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
from ots_tunnel.snapshot.splits import freeze, serialise, split_list
from ots_tunnel.spark import register
from ots_tunnel.spark.cluster import ConfigMaps, in_cluster
from ots_tunnel.spark.copying import RESULT_SCHEMA, CopySplits
from ots_tunnel.spark.progress import ProgressRecord
from ots_tunnel.spark.source import write_splits_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds between two looks at what has finished.
RECORD_SECONDS = 1.0
#: Seconds between two lines in the log.
LOG_SECONDS = 10.0
logger = logging.getLogger(__name__)


class SplitSet(AccumulatorParam):  # type: ignore[misc]  # pyspark has no types we follow
    """A set of splits that grows by union: a split reported twice, by a retried task, counts once."""

    def zero(self, value: frozenset[int]) -> frozenset[int]:
        """The empty set."""
        return frozenset()

    def addInPlace(self, value1: frozenset[int], value2: frozenset[int]) -> frozenset[int]:  # noqa: N802, RUF100
        """The union."""
        return value1 | value2


class Report:
    """Adds a split to an accumulator; Spark delivers it when the task has succeeded."""

    def __init__(self, accumulator: Any) -> None:
        self._accumulator = accumulator

    def __call__(self, split: int) -> None:
        """Say that every row of `split` is stored."""
        self._accumulator.add(frozenset((split,)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    parser = argparse.ArgumentParser(prog="snapshot", description="Copy every row of a table into another table.")
    parser.add_argument("--config", type=Path, required=True, help="the snapshot's document")
    flags = parser.parse_args(arguments)
    set_up_logs()
    # Spark's bridge tells every call at this level.
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
    """The job has failed or left splits undone; the record has what is done."""


def run(config: SnapshotConfig, spark: SparkSession, config_maps: ConfigMaps) -> None:
    """Copy what is left; returns when every split is recorded as done.

    Raises:
        SnapshotIncomplete: a task failed for good.
        OwnershipLost: another driver of this snapshot is at work.
        ServiceError, TransportError: the source or the API server does not answer.
    """
    record = ProgressRecord(config_maps, config.progress)
    record.load()
    if record.splits is None:
        freeze_splits(config, record)
    assert record.splits is not None
    undone = [index for index in range(len(record.splits)) if index not in record.done]
    logger.info("%d of %d splits to copy", len(undone), len(record.splits), extra={"action": LogAction.STARTED})
    if undone:
        copy_splits(config, spark, record, undone)
    if len(record.done) != len(record.splits):
        raise SnapshotIncomplete(f"{len(record.done)} of {len(record.splits)} splits are done")
    logger.info("all %d splits are done", len(record.splits), extra={"action": LogAction.COMPLETED})


def freeze_splits(config: SnapshotConfig, record: ProgressRecord) -> None:
    """Ask the service for splits and store them, before anything is read."""
    source = config.source
    client = SyncTableClient(source.endpoint, source.instance, FileCredentials(source.credentials.directory))
    try:
        ranges = client.compute_splits(source.table, unit_bytes=config.splits.bytes_per_split)
    finally:
        client.close()
    record.freeze(*freeze(split_list(ranges)))


def copy_splits(config: SnapshotConfig, spark: SparkSession, record: ProgressRecord, undone: Sequence[int]) -> None:
    """Run one job over the undone splits and record what finishes while it runs.

    Raises:
        SnapshotIncomplete: the job failed; what finished before is recorded.
        OwnershipLost: another driver of this snapshot is at work; the job is cancelled.
    """
    assert record.splits is not None
    register(spark)
    done = spark.sparkContext.accumulator(frozenset(), SplitSet())
    with (
        tempfile.NamedTemporaryFile(suffix=".json") as file,
        ThreadPoolExecutor(1, thread_name_prefix="job") as jobs,
    ):
        write_splits_file(Path(file.name), serialise(record.splits), undone)
        reader = spark.read.format("ots").option("mode", "raw").option("splitsFile", file.name)
        reader = reader.option("endpoint", config.source.endpoint).option("instance", config.source.instance)
        reader = reader.option("credentialsDirectory", str(config.source.credentials.directory))
        rows = reader.option("table", config.source.table).load()
        frame = rows.mapInArrow(CopySplits(config, Report(done)), RESULT_SCHEMA)
        job = jobs.submit(frame.collect)
        try:
            finished = follow(job, lambda: done.value, record)
        except OwnershipLost:
            spark.sparkContext.cancelAllJobs()
            raise
    record.mark(split for split, _ in finished)
    logger.info("copied %d rows", sum(rows for _, rows in finished), extra={"action": LogAction.COMPLETED})


def follow(job: Future[Any], done: Callable[[], frozenset[int]], record: ProgressRecord) -> Any:
    """Record finished splits until the job ends; its result.

    Raises:
        SnapshotIncomplete: the job failed.
        OwnershipLost: another driver is at work.
    """
    assert record.splits is not None
    total, logged = len(record.splits), time.monotonic()
    while not wait([job], timeout=RECORD_SECONDS).done:
        _try_mark(record, done())
        if time.monotonic() - logged >= LOG_SECONDS:
            logged = time.monotonic()
            logger.info(
                "%d of %d splits are done", len(record.done), total, extra={"action": LogAction.SNAPSHOT_PROGRESS}
            )
    if (error := job.exception()) is not None:
        # Whatever Spark raises, what is done stays done.
        _try_mark(record, done())
        raise SnapshotIncomplete(f"the job failed: {_first_line(error)}") from error
    return job.result()


def _try_mark(record: ProgressRecord, done: frozenset[int]) -> None:
    """Record what can be recorded now; an API server that does not answer is asked again a second later."""
    try:
        record.mark(done)
    except OwnershipLost:
        raise
    except TunnelError as error:
        logger.warning("progress is not recorded: %s", error, extra={"action": LogAction.SNAPSHOT_PROGRESS})


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith("ots_tunnel.errors.")]
    return (telling or lines or [type(error).__name__])[-1 if telling else 0][:500]


if __name__ == "__main__":
    sys.exit(main())
