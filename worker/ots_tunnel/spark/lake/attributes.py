"""Attributes that a frame has in a map, because they have no column: asked for before the table grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ots_tunnel.errors import QueryRefused
from ots_tunnel.spark.lake.growth import TYPES
from ots_tunnel.spark.lake.projection import kinds_in


def seen(frame: Any, column: str, known: Sequence[str]) -> dict[str, set[str]]:
    """The attributes in a map, with the members of their values, but those that have a column already.

    Most batches have none, so that is asked first: to tell them apart takes Spark another stage.

    Args:
        known: names of columns.
    """
    from pyspark.sql import functions as F

    pairs = frame.select(F.explode(kinds_in(F.col(column))).alias("found")).select("found.*")
    pairs = pairs.where(~F.col("name").isin(list(known)))
    if not pairs.limit(1).collect():
        return {}
    found: dict[str, set[str]] = {}
    for row in pairs.distinct().collect():
        found.setdefault(row.name, set()).add(row.member)
    return found


def refuse(frame: Any, column: str) -> None:
    """Refuse a frame in which the map has an attribute.

    Raises:
        QueryRefused: names one, and its type.
    """
    from pyspark.sql import functions as F

    found = frame.select(F.explode(kinds_in(F.col(column))).alias("found")).select("found.*").limit(1).collect()
    if found:
        name, kind = found[0].name, TYPES[found[0].member].upper()
        raise QueryRefused(
            f"growth: found attribute {name!r} with a value of {kind}, for which the table has no column; allowed with "
            "'refuse' are its columns; 'add' gives it one, 'map' keeps such values in a map"
        )
