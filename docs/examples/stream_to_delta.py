"""Follow a table into a Delta table with Spark: each change once, also where the program was killed and started again.

    ots-tunnel tunnel create orders orders-log --type Stream
    spark-submit --packages io.delta:delta-spark_4.2_2.13:4.4.0 \
        --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \
        --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \
        stream_to_delta.py https://shop.cn-hangzhou.ots.aliyuncs.com shop orders orders-log /etc/ots/keys /data/log

The folder has `changes`, the Delta table, and `checkpoint`, where Spark writes how far it is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

from ots_tunnel.spark import register
from ots_tunnel.spark.lake import ChangeLog, Upkeep


def main() -> None:
    """Follow the tunnel until the program is stopped, or until it has caught up."""
    parser = argparse.ArgumentParser()
    for name in ("endpoint", "instance", "table", "tunnel", "secrets"):
        parser.add_argument(name)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--columns", default="", help="attributes with a column of their own, such as 'price DOUBLE'")
    parser.add_argument("--growth", default="add", help="what happens to others: add, map or refuse")
    parser.add_argument("--available-now", action="store_true", help="end when what is there now is copied")
    given = parser.parse_args()

    spark = SparkSession.builder.appName("stream to Delta").getOrCreate()
    register(spark)
    changes = (
        spark.readStream.format("ots")
        .option("endpoint", given.endpoint)
        .option("instance", given.instance)
        .option("table", given.table)
        .option("tunnel", given.tunnel)
        .option("credentialsDirectory", given.secrets)
    )
    if given.columns:
        changes = changes.option("columns", given.columns)
    log = ChangeLog(str(given.folder / "changes"), growth=given.growth, upkeep=Upkeep())
    writer = changes.load().writeStream.foreachBatch(log)
    writer = writer.option("checkpointLocation", str(given.folder / "checkpoint"))
    trigger = writer.trigger(availableNow=True) if given.available_now else writer.trigger(processingTime="5 seconds")
    trigger.start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
