"""Follow a table into Parquet files with Spark: each change once, also where the program was killed and started again.

    ots-tunnel tunnel create orders orders-lake --type Stream
    python stream_to_parquet.py https://shop.cn-hangzhou.ots.aliyuncs.com shop orders orders-lake /etc/ots/keys /data

The folder has `changes`, the files, and `checkpoint`, where Spark writes how far it is. Both belong together. Read the
files with Spark: it knows which of them count.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

from ots_tunnel.spark import register


def main() -> None:
    """Follow the tunnel until the program is stopped, or until it has caught up."""
    parser = argparse.ArgumentParser()
    for name in ("endpoint", "instance", "table", "tunnel", "secrets"):
        parser.add_argument(name)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--columns", help="attributes with a column of their own, such as 'price DOUBLE'")
    parser.add_argument("--available-now", action="store_true", help="end when what is there now is copied")
    given = parser.parse_args()

    spark = SparkSession.builder.appName("stream to Parquet").getOrCreate()
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
    writer = (
        changes.load()
        .writeStream.format("parquet")
        .option("path", str(given.folder / "changes"))
        .option("checkpointLocation", str(given.folder / "checkpoint"))
    )
    trigger = writer.trigger(availableNow=True) if given.available_now else writer.trigger(processingTime="1 second")
    trigger.start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
