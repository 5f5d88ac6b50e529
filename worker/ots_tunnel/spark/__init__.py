"""Tablestore in PySpark: reads a table by splits, follows its changes, writes rows, and copies tables.

    from ots_tunnel.spark import register

    register(spark)
    frame = spark.read.format("ots").options(endpoint=..., instance=..., table=..., columns="price DOUBLE").load()

`source` is the format, `place` the table that its options name, and `registration` makes it known to a session.
`versions` refuses what a minor of PySpark cannot do.

In `reader`, `options`, `ddl` and `schemas` check what a query asks for. `planning` and `inference` find its columns and
splits; `where`, `key_filters` and `key_ranges` turn conditions into ranges of keys. `reading` has its pages, `logins`
its keys, `readers` are what Spark calls, and `occurrence` warns of absent columns. `batches` and `columns` turn pages
into Arrow. In `writer`, `layout` checks a frame, `rows` makes records of it, `writers` writes them, and `dead_letters`
stores those that are refused. `stream` follows the changes of a tunnel, and `lake` takes them into Delta tables.

`snapshot` is the driver program that copies existing rows, and `query` the one that follows a tunnel into files.
`failures` has the errors of tasks, and `cluster` the ConfigMaps in which both programs keep their records.
"""

from __future__ import annotations

from typing import Any


def register(spark: Any, *, push_filters: bool = False) -> None:
    """Register the format `ots` with a session, a classic one or one of Spark Connect; further calls change nothing.

    Args:
        push_filters: switch on the session's setting without which Spark refuses the option `pushFilters`.

    Raises:
        ConfigError: the session's Spark has no data sources in Python, or gives them no filters; says what to use.
    """
    from ots_tunnel.spark.versions import PUSH_DOWN_SETTING, Ability, require

    require(Ability.BATCH, spark.version)
    if push_filters:
        require(Ability.PUSH_DOWN, spark.version)
        spark.conf.set(PUSH_DOWN_SETTING, "true")
    from ots_tunnel.spark.registration import data_source_of

    spark.dataSource.register(data_source_of(spark))
