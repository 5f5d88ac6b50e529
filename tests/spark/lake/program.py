"""A query into a Delta table, as a process that kills itself and its Spark between Delta's commit and Spark's own.

    python -m tests.spark.lake.program mirror|log SOURCE FOLDER [--kill-after BATCH] [--dump] ...

SOURCE is JSON: the options of the stream. FOLDER has `table` and `checkpoint`, and what --dump writes: `rows.json` and
`history.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ots_tunnel.spark import register
from ots_tunnel.spark.lake import ChangeLog, Mirror, Upkeep


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
    parser.add_argument("--own-column", help="name and type of a column that the owner adds behind the query")
    given = parser.parse_args()

    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    table, checkpoint = given.table or str(given.folder / "table"), str(given.folder / "checkpoint")
    upkeep = Upkeep(compact_seconds=0.001, vacuum_seconds=0.001)
    trigger = {"processingTime": "100 milliseconds"} if given.follow else {"availableNow": True}
    if given.empty:
        without_rows(spark, given, table)
        dump(spark, table, given.folder)
        return
    if given.kind == "mirror":
        mirror = Mirror(spark, given.source, table, columns=given.columns, growth=given.growth, upkeep=upkeep)
        mirror.prepare()
        mirror.apply = Killing(mirror.apply, given.kill_after)  # type: ignore[method-assign]  # the test's seam
        query = mirror.start(checkpoint, **trigger)
    else:
        log = ChangeLog(table, given.growth, upkeep)
        changes = spark.readStream.format("ots").options(**given.source).load()
        writer = changes.writeStream.foreachBatch(Killing(log, given.kill_after))
        query = writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()
    query.awaitTermination()
    if given.own_column:
        spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMNS ({given.own_column})")
    if given.dump:
        dump(spark, table, given.folder)
    spark.stop()


def without_rows(spark: Any, given: argparse.Namespace, table: str) -> None:
    """Write batches without rows, each as the first one of a new driver."""
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "query")
    batch = spark.createDataFrame([], spark.readStream.format("ots").options(**given.source).load().schema)
    for number in range(given.empty):
        if given.kind == "mirror":
            mirror = Mirror(spark, given.source, table)
            mirror.prepare()
            mirror.apply(batch, number)
        else:
            ChangeLog(table)(batch, number)


def dump(spark: Any, table: str, folder: Path) -> None:
    """Write every row of the table, and what its commits tell."""
    rows = [row.asDict(recursive=True) for row in spark.read.format("delta").load(table).collect()]
    history = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").select("version", "operation", "userMetadata").collect()
    (folder / "rows.json").write_text(json.dumps(rows, default=_of_bytes))
    (folder / "history.json").write_text(json.dumps([row.asDict() for row in history]))


def _of_bytes(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return {"hex": bytes(value).hex()}
    raise TypeError(f"found {type(value).__name__}")


if __name__ == "__main__":
    main()
