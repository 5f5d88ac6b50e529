"""Look at a table with Spark: its columns, some of its rows, and a sum by Spark's SQL.

    python read_a_table.py https://shop.cn-hangzhou.ots.aliyuncs.com shop orders /etc/ots/keys --where "id = 'c01'"

Columns come from the first rows; one whose values have several types is text here. In a notebook the session is there
already, and each step is a cell.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

from ots_tunnel.spark import register


def main() -> None:
    """Print the schema, ten rows and the number of rows for each value of the first column."""
    parser = argparse.ArgumentParser()
    for name in ("endpoint", "instance", "table", "secrets"):
        parser.add_argument(name)
    parser.add_argument("--where", help="conditions on the key, so that not the whole table is read")
    given = parser.parse_args()

    spark = SparkSession.builder.appName("look at a table").getOrCreate()
    register(spark)
    reader = (
        spark.read.format("ots")
        .option("endpoint", given.endpoint)
        .option("instance", given.instance)
        .option("table", given.table)
        .option("credentialsDirectory", given.secrets)
        .option("onTypeConflict", "string")
    )
    if given.where:
        reader = reader.option("where", given.where)
    rows = reader.load()
    rows.printSchema()
    rows.show(10, truncate=40)

    rows.createOrReplaceTempView("found")
    first = rows.columns[0]
    spark.sql(f"SELECT `{first}`, count(*) AS number FROM found GROUP BY `{first}` ORDER BY number DESC").show()
    spark.stop()


if __name__ == "__main__":
    main()
