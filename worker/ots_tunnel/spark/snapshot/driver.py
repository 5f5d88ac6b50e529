"""The driver program of a snapshot: copies every row of a table, with all versions, into another table.

    python -m ots_tunnel.spark.snapshot.driver --config /etc/ots/snapshot.yaml

Theory of operation
-------------------

The driver is one of two writers of a mirror. The operator starts it after the Stream tunnel has tokens, and starts the
workers that follow the stream only after the driver has finished (docs/architecture.md 3.3). Three parts take part:

    driver      this program: reads the record, freezes the splits, runs Spark jobs (`rounds`), records what is copied
    record      ConfigMap `<name>-snapshot` (`ots_tunnel.snapshot.record`): a bitmap of finished splits, and cursors of
                those that are copied in part; the frozen list is in an immutable ConfigMap beside it (`split_lists`)
    tasks       one per split and round, on executors (`copying`): reads rows with GetRange and writes them

The steps, in this order:

1. Load the record. A record with another label belongs to another copy and is ignored.
2. Freeze the splits, only if the record has none: ask the service for split points and store the list before the
   first GetRange. The list never changes afterwards, because the service cuts a growing table elsewhere tomorrow, and
   a finished split must stay the same key range.
3. Run rounds of tasks until every split is recorded as done. A task copies its split from where it stands for a slice
   of time; a split that is not finished then resumes in the next round.
4. End with exit code 0 only if every split is recorded, or no other attempt can do better.

Failures, by priority:

    OwnershipLost           another driver wrote the record, or could have been started: cancel the job, exit code 1
    a permanent error       of a task: cancel the job, record what is copied, exit code 1. One that is about rows or
                            tables stays: its reason goes into the record, where the operator finds it, and the exit
                            code is 0, because the Spark operator starts the driver again after any other one
    a task fails for good   record what is copied, exit code 1; Spark has tried the task `spark.task.maxFailures`
                            times before (the operator sets 8)
    API server unavailable  log a warning and try again with the next look; the job keeps running, for 90 s. Before
                            the first job there is no next look: exit code 1
    driver killed           the application is started again by its restart policy and resumes at step 1

Example: 5 splits are frozen, splits 0 and 3 are recorded, split 1 has a cursor, the driver pod is evicted. The new
driver loads the record, finds 5 splits with the bitmap 0b01001, and runs a round over 1, from its cursor, 2 and 4. Rows
of split 1 behind the cursor that the first driver had already written are written again: puts of whole rows and
updates, both with versions, are idempotent. A task of the first driver may even write beside the new one (`copying`).

Exit codes: 0 every split is recorded as done, or the record says why it cannot be, 1 the snapshot can be tried again,
2 the document or the pod is wrong.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.credentials import FileCredentials
from ots_tunnel.errors import ConfigError, TunnelError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.logs import set_up_logs
from ots_tunnel.snapshot.document import SnapshotConfig, load_snapshot_config
from ots_tunnel.snapshot.splits import freeze, most_splits, split_list
from ots_tunnel.spark.cluster import ConfigMaps, in_cluster
from ots_tunnel.spark.failures import SnapshotIncomplete, SnapshotRefused, one_line
from ots_tunnel.spark.snapshot.progress import ProgressRecord
from ots_tunnel.spark.snapshot.rounds import copy_round

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


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
    except SnapshotRefused as error:
        logger.error("%s", error, extra={"action": LogAction.TERMINAL_ERROR})
        return 0  # the Spark operator starts a driver again that ends with another code
    except (TunnelError, SnapshotIncomplete) as error:
        logger.error("%s", one_line(error), extra={"action": LogAction.TERMINAL_ERROR})
        return 1
    finally:
        spark.stop()
    return 0


def run(config: SnapshotConfig, spark: SparkSession, config_maps: ConfigMaps) -> None:
    """Copy the splits that are not recorded as done; return when every split is recorded.

    Raises:
        SnapshotRefused: rows or tables are refused for good; the record has the reason.
        SnapshotIncomplete: a task failed for good.
        OwnershipLost: another driver of this snapshot is running.
        ServiceError, TransportError: the source or the API server does not answer.
    """
    record = ProgressRecord(config_maps, config.progress, write_deadline=config.write_deadline_seconds)
    record.load()
    if record.splits is None:
        freeze_splits(config, record)
    assert record.splits is not None
    total, pending = len(record.splits), record.pending()
    logger.info("%d of %d splits to copy", len(pending), total, extra={"action": LogAction.STARTED})
    while pending:
        try:
            copy_round(config, spark, record, pending)
        except SnapshotRefused as error:
            record.give_up(str(error))
            raise
        before, pending = pending, record.pending()
        if pending == before:
            raise SnapshotIncomplete(
                f"{len(record.copied.done)} of {total} splits are done, and a round copied nothing"
            )
    logger.info("all %d splits are done", total, extra={"action": LogAction.COMPLETED})
    omitted = record.copied.omitted
    if omitted:
        logger.warning(
            "%d cells were left out: they are past the destination's time to live",
            omitted,
            extra={"action": LogAction.COMPLETED},
        )
    if omitted is None:
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


if __name__ == "__main__":
    sys.exit(main())
