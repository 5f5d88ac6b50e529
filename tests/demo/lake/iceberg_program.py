"""Write the rows of an Iceberg table as JSON lines, in the order of its key: the program of `iceberg_table`'s pod.

iceberg_program.py PLACE KEY,KEY FILE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def main(place: str, key: str, file: str) -> None:
    """Read the table by its path."""
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    local = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = local.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    table = spark.read.format("iceberg").load(place).orderBy(*key.split(","))
    with Path(file).open("w") as lines:
        for row in table.toLocalIterator(prefetchPartitions=True):
            lines.write(json.dumps(row.asDict(recursive=True), default=hexadecimal) + "\n")
    spark.stop()


def hexadecimal(value: Any) -> Any:
    """What JSON has for bytes, which it lacks."""
    if isinstance(value, (bytes, bytearray)):
        return {"hex of bytes": bytes(value).hex()}
    raise TypeError(f"found {type(value).__name__}")


if __name__ == "__main__":
    main(*sys.argv[1:])
