"""Keep a Delta table equal to a table with Spark: its existing rows as one commit, and then every change.

    ots-tunnel tunnel create orders orders-lake --type Stream
    spark-submit --packages io.delta:delta-spark_4.2_2.13:4.4.0 \
        --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \
        --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \
        --conf spark.sql.codegen.cache.maxEntries=1000 \
        mirror_to_delta.py https://shop.cn-hangzhou.ots.aliyuncs.com shop orders orders-lake /etc/ots/keys /data/orders

The folder has `table`, the Delta table, and `checkpoint`, where Spark writes how far it is. Both belong together. The
tunnel comes first, so that no change is lost between the existing rows and the changes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

from ots_tunnel.spark import register
from ots_tunnel.spark.lake import Mirror, Upkeep


def main() -> None:
    """Follow the tunnel until the program is stopped, or until it has caught up."""
    parser = argparse.ArgumentParser()
    for name in ("endpoint", "instance", "table", "tunnel", "secrets"):
        parser.add_argument(name)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--columns", default="", help="attributes with a column from the start, such as 'price DOUBLE'")
    parser.add_argument("--growth", default="add", help="what happens to others: add, map or refuse")
    parser.add_argument("--available-now", action="store_true", help="end when what is there now is copied")
    given = parser.parse_args()

    spark = SparkSession.builder.appName("mirror to Delta").getOrCreate()
    register(spark)
    source = {
        "endpoint": given.endpoint,
        "instance": given.instance,
        "table": given.table,
        "tunnel": given.tunnel,
        "credentialsDirectory": given.secrets,
    }
    path = str(given.folder / "table")
    mirror = Mirror(spark, source, path, columns=given.columns, growth=given.growth, upkeep=Upkeep())
    mirror.prepare()
    checkpoint = str(given.folder / "checkpoint")
    if given.available_now:
        mirror.start(checkpoint, availableNow=True).awaitTermination()
    else:
        mirror.start(checkpoint, processingTime="5 seconds").awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
