"""Batches that are merged into a Delta table without a query.

    python -m tests.spark.lake.merges compiled|marks SOURCE FOLDER

SOURCE is JSON: the options of the stream. FOLDER gets `compiled.json` or `marks.json`: a number for each batch.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ots_tunnel.spark import register
from ots_tunnel.spark.lake import Mirror
from ots_tunnel.spark.lake.merging import merge
from ots_tunnel.spark.lake.tables.delta import DeltaTable
from ots_tunnel.spark.sessions import classic_context

#: How often the same batch is merged.
BATCHES = 6


def compiled(spark: Any, source: dict[str, str], folder: Path) -> Iterator[int]:
    """Merge the first batch of a stream again and again; yields how many classes Spark has compiled for each time."""
    mirror = Mirror(spark, source, str(folder / "table"))
    mirror.prepare()
    changes = spark.readStream.format("ots").options(**source).load()
    writer = changes.writeStream.foreachBatch(lambda batch, number: batch.write.parquet(str(folder / f"batch{number}")))
    writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    batch = spark.read.schema(changes.schema).parquet(str(folder / "batch0"))
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "query")
    jvm = classic_context(spark)._jvm  # noqa: SLF001 - PySpark does not tell it
    metrics = jvm.org.apache.spark.metrics.source.CodegenMetrics
    for number in range(BATCHES):
        before = metrics.METRIC_COMPILATION_TIME().getCount()
        mirror.apply(batch, number)
        yield metrics.METRIC_COMPILATION_TIME().getCount() - before


def marks(spark: Any, source: dict[str, str], folder: Path) -> Iterator[int]:
    """Replace rows of a large file, few and then many; yields how many are marked as gone behind compaction.

    Twice, of which the second time beside a larger file, and without statistics: Delta counts the rows of files with
    marks alone.
    """
    spark.conf.set("spark.databricks.delta.optimize.minFileSize", "1")
    yield from _marks(spark, str(folder / "alone"), beside=0)
    spark.conf.set("spark.databricks.delta.stats.collect", "false")
    yield from _marks(spark, str(folder / "beside"), beside=200)


def _marks(spark: Any, path: str, beside: int) -> Iterator[int]:
    table = DeltaTable(spark, path)
    table.create([("id", "bigint"), ("v", "string")], {}, is_merged=True)
    for number, (first, end) in enumerate(((0, 40), (100, 100 + beside))):
        table.append(spark.range(first, end, 1, 1).selectExpr("id", "'first' AS v"), "rows", number)
    # rows of one file alone: OPTIMIZE joins two files that each have many marks
    for number, (begin, end) in enumerate(((0, 4), (4, 20)), 1):
        rows = spark.range(begin, end, 1, 1).selectExpr("id", f"'batch {number}' AS v", "false AS gone")
        with table.once("batches", number):
            merge(table, rows, ["id", "v"], ["id"])
        if number == 2:  # it ends new marks alone
            table.set_property("delta.enableDeletionVectors", "false")
        table.compact()
        assert table.frame().where("v = 'first'").count() == 40 + beside - end
        assert table.frame().count() == 40 + beside
        files = table._snapshot().allFiles().toDF()  # noqa: SLF001 - Delta's SQL does not tell it
        (found,) = DataFrame(files, spark).selectExpr("sum(deletionVector.cardinality) AS marked").collect()
        yield int(found.marked or 0)


PROGRAMS: dict[str, Callable[[Any, dict[str, str], Path], Iterator[int]]] = {"compiled": compiled, "marks": marks}


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=PROGRAMS)
    parser.add_argument("source", type=json.loads)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    found = list(PROGRAMS[given.kind](spark, given.source, given.folder))
    (given.folder / f"{given.kind}.json").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
