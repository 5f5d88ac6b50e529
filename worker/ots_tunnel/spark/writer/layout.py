"""What the columns of a frame are, checked beside the table before any row is written. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ots_tunnel.client.table_calls import TableDescription
from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.reader.ddl import check_repeated, check_type
from ots_tunnel.spark.reader.schemas import DEFINED_TYPES, key_columns, keys_of
from ots_tunnel.spark.writer.options import WriteOptions


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a frame by what they are."""

    key: tuple[str, ...]
    """In the table's order."""
    cells: tuple[str, ...]
    action: str = ""
    """Column with the action; empty where every row is a put."""
    version: str = ""
    """Column with the version of the cells; empty where the service chooses it."""


def layout_of(options: WriteOptions, columns: Sequence[tuple[str, str]], table: TableDescription) -> Layout:
    """The layout of a frame.

    Args:
        columns: names and types, as `simpleString` writes them.

    Raises:
        ConfigError: a column is missing, comes twice, or has a type that it cannot have; names it.
    """
    check_repeated([name for name, _ in columns])
    kinds = {name: check_type(name, kind) for name, kind in columns}
    keys = dict(key_columns(table))
    for option, column, wanted in (
        ("actionColumn", options.action_column, "string"),
        ("versionColumn", options.version_column, "bigint"),
    ):
        if column and (column in keys or kinds.get(column) != wanted):
            found = "a column of the key" if column in keys else f"type {kinds[column]}" if column in kinds else "none"
            raise ConfigError(f"option {option!r}: column {column!r}: found {found}, allowed is a column of {wanted}")
    for name, kind in keys.items():
        if kinds.get(name) != kind:
            found = f"type {kinds[name]}" if name in kinds else "no such column"
            raise ConfigError(f"column {name!r}: found {found}, {keys_of(table)}")
    special = {options.action_column, options.version_column}
    cells = tuple(name for name, _ in columns if name not in keys and name not in special)
    for name, kind in table.defined_columns:
        if name in cells and kinds[name] != DEFINED_TYPES[kind]:
            raise ConfigError(
                f"column {name!r}: found type {kinds[name]}, the table defines it as {DEFINED_TYPES[kind]}"
            )
    return Layout(tuple(keys), cells, options.action_column, options.version_column)
