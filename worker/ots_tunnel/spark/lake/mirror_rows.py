"""Frames of a mirror: the changes of a batch beside the stored rows of its keys, as one row for each key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from ots_tunnel.query.spelling import OTHERS, VERSIONS
from ots_tunnel.spark.lake.projection import cells_of, rest_of, value_in
from ots_tunnel.spark.lake.row_frames import decoded, folded
from ots_tunnel.spark.lake.tables.statements import VALUE, ddl_of, quoted

_ROWS: Final = f"row map<string,{VALUE}>, versions map<string,bigint>"
#: Options of a stream that a read of the table has as well.
_OF_PLACE: Final = ("endpoint", "instance", "table", "credentialsdirectory", "credentialsprovider")


def changed_rows(batch: Any, stored: Any, key: Sequence[str]) -> Any:
    """The rows after a batch: `key`, `row` and `versions`; `row` is NULL where it is gone.

    Args:
        batch: rows of a stream without the option `columns`.
        stored: the mirror.
        key: names of its key's columns.
    """
    from pyspark.sql import functions as F

    # a semi join with few keys first: the stored rows neither move nor become cells for it. What is left of a key that
    # the batch only puts or deletes does not depend on its stored row; without an update Spark does not read the mirror
    updates = batch.where(F.col("action") == "UPDATE")
    keys = updates.select(
        *(F.col(f"key.{quoted(name)}").alias(f"k{place}") for place, name in enumerate(key))
    ).distinct()
    same = [stored[quoted(name)] == keys[f"k{place}"] for place, name in enumerate(key)]
    stored = stored.join(F.broadcast(keys), same, "left_semi")
    own_key = F.struct(*(F.col(quoted(name)).alias(name) for name in key)).alias("key")
    attributes = [
        (found.name, found.dataType.simpleString())
        for found in stored.schema.fields
        if found.name not in (*key, OTHERS, VERSIONS)
    ]
    # a stored row is the put that comes before all changes
    before = stored.select(
        F.lit(0).alias("turn"),
        F.lit(None).cast(batch.schema["sequence"].dataType).alias("sequence"),
        F.lit("PUT").alias("action"),
        own_key,
        cells_of(attributes, OTHERS, VERSIONS).alias("cells"),
    )
    changes = batch.select(F.lit(1).alias("turn"), "sequence", "action", "key", "cells")
    # existing rows have no sequence, and come before the changes of their channel's successors in batches of their own
    parallel = batch.sparkSession.sparkContext.defaultParallelism
    sorted_changes = (
        before.unionByName(changes)
        .repartition(parallel, "key")
        .sortWithinPartitions("key", "turn", "sequence.epoch", "sequence.timestamp_us", "sequence.row_index")
        .select("action", "key", "cells")
    )
    return sorted_changes.mapInArrow(folded, f"key {ddl_of(batch.schema['key'].dataType)}, {_ROWS}")


def existing_rows(spark: Any, source: Mapping[str, str], key: Sequence[tuple[str, str]]) -> Any:
    """The rows of the source as it is now, in the same columns.

    Args:
        source: options of the stream.
        key: name and type of each of its columns.
    """
    place = {name: value for name, value in source.items() if name.lower() in _OF_PLACE}
    images = spark.read.format("ots").options(**place, mode="raw", maxVersions="1").load()
    kind = ",".join(f"{quoted(name)}:{word}" for name, word in key)
    return images.select("row").mapInArrow(partial(decoded, key=tuple(key)), f"key struct<{kind}>, {_ROWS}")


def gone() -> Any:
    """Expression of these rows: whether a row is gone."""
    from pyspark.sql import functions as F

    return F.col("row").isNull()


def in_columns(rows: Any, key: Sequence[str], columns: Sequence[tuple[str, str]], *more: Any) -> Any:
    """The rows with the columns of the mirror, in their order.

    Args:
        columns: all columns of the mirror by name and type.
        more: further columns of the rows, to come behind them.
    """
    from pyspark.sql import functions as F

    values = F.col("row")
    attributes = [(name, kind) for name, kind in columns if name not in (*key, OTHERS, VERSIONS)]
    own = {
        **{name: F.col(f"key.{quoted(name)}") for name in key},
        **{name: value_in(values, name, kind) for name, kind in attributes},
        OTHERS: rest_of(values, attributes),
        VERSIONS: F.col("versions"),
    }
    return rows.select(*(own[name].alias(name) for name, _ in columns), *more)
