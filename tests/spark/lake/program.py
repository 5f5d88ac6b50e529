"""A query into a table of a lake, as a process that kills itself and its Spark between the table's commit and Spark's.

    python -m tests.spark.lake.program mirror|log SOURCE FOLDER [--kill-after BATCH] [--dump] ...

SOURCE is JSON: the options of the stream. FOLDER has `table` and `checkpoint`, and what --dump writes: `rows.json` and
`batches.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ots_tunnel.spark import register
from ots_tunnel.spark.lake import ChangeLog, Delta, Iceberg, Mirror, Upkeep
from ots_tunnel.spark.lake.tables.lake_table import LakeTable
from ots_tunnel.spark.versions import bounds_streams

#: Seconds for a query that is to end when it has everything.
PATIENCE_SECONDS = 600


FORMATS = {"delta": Delta, "iceberg": Iceberg}


class Killing:
    """A function for foreachBatch: the process is gone after a batch, before Spark knows that it was written."""

    def __init__(self, write: Any, batch: int | None) -> None:
        self._write = write
        self._batch = batch

    def __call__(self, batch: Any, batch_id: int) -> None:
        self._write(batch, batch_id)
        if batch_id == self._batch:
            os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("mirror", "log"))
    parser.add_argument("source", type=json.loads)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kill-after", type=int)
    parser.add_argument("--dump", action="store_true")
    parser.add_argument("--empty", type=int, default=0, help="so many batches without rows, in place of a query")
    parser.add_argument("--follow", action="store_true", help="follow until the kill")
    parser.add_argument("--growth", default="add")
    parser.add_argument("--columns", default="")
    parser.add_argument("--table", help="in the place of FOLDER/table")
    parser.add_argument("--format", choices=FORMATS, default="delta")
    parser.add_argument("--own-column", help="name and type of a column that the owner adds behind the query")
    given = parser.parse_args()

    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    place = FORMATS[given.format](given.table or str(given.folder / "table"))
    checkpoint, report, began = str(given.folder / "checkpoint"), given.folder / "report", time.time()
    report.unlink(missing_ok=True)
    upkeep = Upkeep(compact_seconds=0.001, vacuum_seconds=0.001)
    knows_its_end = bounds_streams(spark.version) and not given.follow
    trigger = {"availableNow": True} if knows_its_end else {"processingTime": "100 milliseconds"}
    if not bounds_streams(spark.version):
        given.source["reportFile"] = str(report)
    if given.empty:
        without_rows(spark, given, place)
        dump(place.seen_by(spark), given.folder)
        return
    if given.kind == "mirror":
        mirror = Mirror(spark, given.source, place, columns=given.columns, growth=given.growth, upkeep=upkeep)
        mirror.prepare()
        mirror.apply = Killing(mirror.apply, given.kill_after)  # type: ignore[method-assign]  # the test's seam
        query = mirror.start(checkpoint, **trigger)
    else:
        log = ChangeLog(place, given.growth, upkeep)
        changes = spark.readStream.format("ots").options(**given.source).load()
        writer = changes.writeStream.foreachBatch(Killing(log, given.kill_after))
        query = writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()
    if knows_its_end or given.follow:
        query.awaitTermination()
    else:
        until_it_has_everything(query, report, began)
    if given.own_column:
        spark.sql(f"ALTER TABLE {place.seen_by(spark).place} ADD COLUMNS ({given.own_column})")
    if given.dump:
        dump(place.seen_by(spark), given.folder)
    spark.stop()


def until_it_has_everything(query: Any, report: Path, began: float) -> None:
    """Run a query until it has what was there when it began, and stop it: before PySpark 4.2 it does not end by that.

    Raises:
        StreamingQueryException: the query has failed.
    """
    while not report.exists() or (json.loads(report.read_text())["readUntil"] or 0) < began:
        if query.awaitTermination(0.5):
            raise AssertionError("the query has ended by itself")
        assert time.time() < began + PATIENCE_SECONDS, "not within its time"
    query.processAllAvailable()
    query.stop()


def without_rows(spark: Any, given: argparse.Namespace, place: Delta) -> None:
    """Write batches without rows, each as the first one of a new driver."""
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "query")
    batch = spark.createDataFrame([], spark.readStream.format("ots").options(**given.source).load().schema)
    for number in range(given.empty):
        if given.kind == "mirror":
            mirror = Mirror(spark, given.source, place)
            mirror.prepare()
            mirror.apply(batch, number)
        else:
            ChangeLog(place)(batch, number)


def dump(table: LakeTable, folder: Path) -> None:
    """Write every row of the table, and the batches that its commits tell."""
    rows = [row.asDict(recursive=True) for row in table.frame().collect()]
    (folder / "rows.json").write_text(json.dumps(rows, default=_of_bytes))
    (folder / "batches.json").write_text(json.dumps(batches_of(table)))


def batches_of(table: LakeTable) -> list[int]:
    """The batches of queries in the order of their commits; the snapshot of a mirror is none."""
    if table.format == "iceberg":
        snapshots = table.spark.table(f"{table.place}.snapshots").orderBy("committed_at").select("summary").collect()
        notes = [(row.summary.get("ots-query"), row.summary.get("ots-batch")) for row in snapshots]
    else:
        history = table.spark.sql(f"DESCRIBE HISTORY {table.place}").orderBy("version").select("userMetadata").collect()
        told = [json.loads(row.userMetadata) for row in history if row.userMetadata]
        notes = [(note["otsQuery"], note["otsBatch"]) for note in told]
    return [int(batch) for query, batch in notes if query is not None and not query.startswith("ots-tunnel/")]


def _of_bytes(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return {"hex": bytes(value).hex()}
    raise TypeError(f"found {type(value).__name__}")


if __name__ == "__main__":
    main()
