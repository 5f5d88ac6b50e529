"""Tablestore in PySpark: a batch source that reads a table by splits, and the snapshot of a mirror.

    from ots_tunnel.spark import register

    register(spark)
    frame = spark.read.format("ots").options(endpoint=..., instance=..., table=..., columns="price DOUBLE").load()

`source` is the batch source, and `registration` makes it known to a session. `options`, `ddl` and `schemas` check what
a query asks for. `planning` and `inference` find its columns and splits; `where`, `key_filters` and `key_ranges` turn
conditions into ranges of keys. `reading`, `batches` and `columns` turn pages into Arrow, `logins` has the keys, and
`occurrence` warns of absent columns. `driver` is the snapshot's driver program, `copying` its task, `pending` the
splits of one job, `progress` and `cluster` the progress record. There is no streaming source yet.
"""

from __future__ import annotations

from typing import Any


def register(spark: Any) -> None:
    """Register the format `ots` with a session; further calls change nothing."""
    from ots_tunnel.spark.registration import data_source_of

    spark.dataSource.register(data_source_of(spark))
