"""Tablestore in PySpark: reading a table by splits, and the snapshot that a mirror starts with.

    from ots_tunnel.spark import register

    register(spark)
    frame = spark.read.format("ots").options(endpoint=..., instance=..., table=..., columns="price DOUBLE").load()

`source` is the batch source, `splits` the frozen split list, `progress` its record in the cluster, `copying` what
a task does, `snapshot` the driver program. The streaming source, `spark.readStream.format("ots-tunnel")`, has its
place in `stream` and does not exist yet.
"""

from __future__ import annotations

from typing import Any


def register(spark: Any) -> None:
    """Make the format `ots` known to a session; harmless when repeated."""
    from ots_tunnel.spark.source import TablestoreDataSource

    spark.dataSource.register(TablestoreDataSource)
