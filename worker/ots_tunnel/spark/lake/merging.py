"""The MERGE of a batch into a mirror."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from ots_tunnel.spark.lake.tables.lake_table import LakeTable
from ots_tunnel.spark.lake.tables.statements import quoted, run


def merge(table: LakeTable, rows: Any, names: Sequence[str], key: Sequence[str]) -> None:
    """Replace, insert and delete the rows of a batch by their key, as one commit.

    Args:
        rows: one for each key, with the columns of the table in their order, and whether the row is gone behind them.
        names: of the table's columns.
        key: those of the key.
    """
    view = f"ots_batch_{uuid.uuid4().hex}"
    # columns of the source by their places: an attribute may be called as anything
    rows.toDF(*(f"c{place}" for place, _ in enumerate(names)), "gone").createOrReplaceTempView(view)
    try:
        run(table.spark, merge_statement(table.place, view, names, key))
    finally:
        table.spark.catalog.dropTempView(view)


def merge_statement(place: str, view: str, names: Sequence[str], key: Sequence[str]) -> str:
    """The statement. Pure.

    Args:
        place: the table in a statement.
        view: of rows with the columns c0, c1, ... for `names`, and `gone`.
    """
    source = {name: f"s.c{place}" for place, name in enumerate(names)}
    same = " AND ".join(f"t.{quoted(name)} = {source[name]}" for name in key)
    values = ", ".join(f"t.{quoted(name)} = {source[name]}" for name in names if name not in key)
    return (
        f"MERGE INTO {place} t USING {view} s ON {same} "
        "WHEN MATCHED AND s.gone THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {values} "
        f"WHEN NOT MATCHED AND NOT s.gone THEN INSERT ({', '.join(map(quoted, names))}) "
        f"VALUES ({', '.join(source.values())})"
    )
