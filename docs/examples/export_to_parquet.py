"""Export a table's present rows into Parquet files with Spark.

    python export_to_parquet.py https://shop.cn-hangzhou.ots.aliyuncs.com shop orders /etc/ots/keys /data/orders \
        --columns "price DOUBLE, customer STRING"

The folder must not exist: a part of an export that was broken off would be taken for a whole one. Rows are read while
the table changes, each as it was at some moment of the export. `mirror_to_delta.py` goes on with the changes.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

from ots_tunnel.spark import register


def main() -> None:
    """Write one folder of files."""
    parser = argparse.ArgumentParser()
    for name in ("endpoint", "instance", "table", "secrets", "folder"):
        parser.add_argument(name)
    parser.add_argument("--columns", required=True, help="attributes to export with their types")
    given = parser.parse_args()

    spark = SparkSession.builder.appName("export to Parquet").getOrCreate()
    register(spark)
    rows = (
        spark.read.format("ots")
        .option("endpoint", given.endpoint)
        .option("instance", given.instance)
        .option("table", given.table)
        .option("credentialsDirectory", given.secrets)
        .option("columns", given.columns)
        .load()
    )
    rows.write.mode("error").parquet(given.folder)
    spark.stop()


if __name__ == "__main__":
    main()
