"""Rows as the columns of a table: from a map of values by attribute to typed columns, and back.

A value is in the column of its attribute if the column has its type; an integer is also in a column of doubles where
both are equal. Every other value stays in the map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ots_tunnel.spark.lake.growth import TYPES

_MEMBERS: Final = {kind: member for member, kind in TYPES.items()}


def attribute_columns(columns: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those that can have the value of an attribute; the owner of a table may have added columns of other types."""
    return [(name, kind) for name, kind in columns if kind in _MEMBERS]


def value_in(values: Any, name: str, kind: str) -> Any:
    """The value of an attribute as a column of this type has it; NULL where it has none that fits.

    Args:
        values: a column with a map of attributes to values.
        kind: name of a type in Spark.
    """
    from pyspark.sql import functions as F

    value = F.try_element_at(values, F.lit(name))
    own = value.getField(_MEMBERS[kind])
    if kind != "double":
        return own
    return F.coalesce(own, F.when(_is_exact(value), value.getField("integer").cast("double")))


def rest_of(values: Any, columns: Sequence[tuple[str, str]]) -> Any:
    """The map without the values that these columns have."""
    from pyspark.sql import functions as F

    named: dict[str, list[str]] = {}
    for name, kind in columns:
        named.setdefault(kind, []).append(name)

    def stays(name: Any, value: Any) -> Any:
        found = F.lit(True)
        # a branch for each type, and not for each column: Spark descends into what is nested
        for kind, names in named.items():
            fits = value.getField(_MEMBERS[kind]).isNotNull()
            if kind == "double":
                fits = fits | F.coalesce(_is_exact(value), F.lit(False))
            found = F.when(name.isin(names), ~fits).otherwise(found)
        return found

    return F.map_filter(values, stays)


def kinds_in(values: Any) -> Any:
    """Expression of a column with the map: an array of (name, member of the value), for `growth`."""
    from pyspark.sql import functions as F

    def pair(entry: Any) -> Any:
        member = F.coalesce(*(F.when(entry.value.getField(member).isNotNull(), F.lit(member)) for member in TYPES))
        return F.struct(entry.key.alias("name"), member.alias("member"))

    return F.transform(F.map_entries(values), pair)


def cells_of(columns: Sequence[tuple[str, str]], others: str, versions: str) -> Any:
    """The columns of a stored row as cells of a put, in the form of the change log (`arrow_rows.CELL`).

    Args:
        others, versions: names of the two maps.
    """
    from pyspark.sql import functions as F

    def cell(name: Any, member: Any, value: Any) -> Any:
        return F.struct(
            name.alias("name"),
            F.lit("PUT").alias("operation"),
            member.alias("type"),
            F.try_element_at(F.col(versions), name).alias("version"),
            value.alias("value"),
        )

    def cell_of_rest(entry: Any) -> Any:
        member = F.coalesce(*(F.when(entry.value.getField(one).isNotNull(), F.lit(one)) for one in TYPES))
        return cell(entry.key, member, entry.value)

    # the type of a column tells the member; looking for it would repeat the value of each column five times
    own = [
        F.when(_column(name).isNotNull(), cell(F.lit(name), F.lit(_MEMBERS[kind]), _value_of(_column(name), kind)))
        for name, kind in columns
    ]
    rest = F.transform(F.map_entries(F.col(others)), cell_of_rest)
    return F.concat(F.array_compact(F.array(*own)), rest) if own else rest


def _column(name: str) -> Any:
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def _value_of(column: Any, kind: str) -> Any:
    from pyspark.sql import functions as F

    return F.struct(
        *((column if TYPES[member] == kind else F.lit(None).cast(TYPES[member])).alias(member) for member in TYPES)
    )


def _is_exact(value: Any) -> Any:
    """Whether an integer is equal to a double; 2^63 - 1 is not: its double is 2^63, which Spark casts back to it."""
    number = value.getField("integer")
    double = number.cast("double")
    return (double < float(1 << 63)) & (double.try_cast("bigint") == number)
