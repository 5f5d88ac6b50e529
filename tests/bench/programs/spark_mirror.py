"""A program of PySpark that keeps a mirror in Delta until it has the change whose number is told.

    python -m tests.bench.programs.spark_mirror JSON

JSON has `options` of the source, `trigger` and `folder`. The attribute `request` has the number of a change's request.
A JSON line with `following` tells that the query runs. A line of the standard input has the last number; behind it, a
JSON line has `versions`: for each version, Unix seconds of its commit and the largest number in it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import col
from pyspark.sql.functions import max as largest

from ots_tunnel.spark import register
from ots_tunnel.spark.lake import Mirror

#: Seconds between two looks for the last number, and until it has to be there.
POLL, DEADLINE = 1.0, 300.0
_MILLISECONDS = 1_000


def main() -> None:
    given = json.loads(sys.argv[1])
    folder = Path(given["folder"])
    table = str(folder / "table")
    spark = SparkSession.builder.appName("bench").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    mirror = Mirror(spark, given["options"], table, columns="request BIGINT")
    mirror.prepare()
    query = mirror.start(str(folder / "checkpoint"), processingTime=given["trigger"])
    print(json.dumps({"following": True}), flush=True)

    last = int(sys.stdin.readline())
    late = time.monotonic() + DEADLINE
    while _largest(spark.read.format("delta").load(table)) < last:
        if not query.isActive or time.monotonic() > late:
            raise RuntimeError(f"request {last} did not come: {query.exception() or query.status}")
        time.sleep(POLL)
    query.stop()
    print(json.dumps({"versions": _versions(spark, table)}), flush=True)
    spark.stop()


def _versions(spark: SparkSession, table: str) -> list[tuple[float, int]]:
    """The versions that a batch has made, from the first on."""
    history = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").where(col("operation") == "MERGE").orderBy("version")
    times = history.selectExpr("version", f"unix_millis(timestamp) / {_MILLISECONDS} AS seconds").collect()
    read = spark.read.format("delta")
    return [(row.seconds, _largest(read.option("versionAsOf", row.version).load(table))) for row in times]


def _largest(rows: Any) -> int:
    found = rows.agg(largest("request").alias("number")).collect()[0].number
    return int(found or 0)


if __name__ == "__main__":
    main()
