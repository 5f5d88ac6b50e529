"""The columns of a table without a schema: its description, and what some rows have. Pure.

Equal rows give equal columns: the key, then the columns that the table defines, in the table's order, then those of the
rows by name. A column that has integers and doubles is one of doubles. Other types together are a conflict, which the
option `onTypeConflict` decides: an error, a column of strings, or a column of the first of them in `ddl.TYPES`, doubles
before integers, whose other values are NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ots_tunnel.client.table_calls import TableDescription
from ots_tunnel.errors import ConfigError
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow
from ots_tunnel.spark.columns import KIND_OF
from ots_tunnel.spark.reader.ddl import TYPES
from ots_tunnel.spark.reader.schemas import DEFINED_TYPES, key_columns


def infer_columns(
    table: TableDescription, rows: Iterable[DecodedRow], on_conflict: str = "error"
) -> list[tuple[str, str]]:
    """Names and types of the columns, each type one of `ddl.TYPES`.

    Args:
        on_conflict: `error`, `string` or `null`.

    Raises:
        ConfigError: a column has values of several types; names it and them.
    """
    defined = {name: {DEFINED_TYPES[kind]} for name, kind in table.defined_columns}
    found: dict[str, set[str]] = {}
    for row in rows:
        for column in row.columns:
            if column.value is not None:
                found.setdefault(column.name, set()).add(KIND_OF[type(column.value)])
    names = [*defined, *sorted(set(found) - set(defined))]
    kinds = {name: defined.get(name, set()) | found.get(name, set()) for name in names}
    return [*key_columns(table), *((name, _one_of(name, kinds[name], on_conflict)) for name in names)]


def _one_of(name: str, kinds: set[str], on_conflict: str) -> str:
    ordered: Sequence[str] = [kind for kind in TYPES if kind in kinds]
    if len(ordered) == 1:
        return ordered[0]
    if kinds == {"bigint", "double"}:
        return "double"
    if on_conflict == "error":
        raise ConfigError(
            f"column {name!r}: found values of types {' and '.join(ordered)}, allowed is one type; name the columns in "
            "option 'columns', or set option 'onTypeConflict' to string or null"
        )
    if on_conflict == "string":
        return "string"
    return "double" if {"bigint", "double"} <= kinds else ordered[0]
