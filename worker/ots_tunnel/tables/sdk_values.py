"""Conversion between our tables and rows and those of the vendor's SDK (docs/data-plane.md 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ots_tunnel.model import Action, CellOp, KeyColumn, KeyType
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables.schema import RowWrite, TableSchema
from ots_tunnel.tables.sdk import sdk

_KEY_TYPES = {"INTEGER": KeyType.INTEGER, "STRING": KeyType.STRING, "BINARY": KeyType.BINARY}


def schema_of(response: Any) -> TableSchema:
    """The schema in an answer of DescribeTable."""
    meta, options = response.table_meta, response.table_options
    return TableSchema(
        name=meta.table_name,
        keys=tuple(_key_column(*key) for key in meta.schema_of_primary_key),
        defined_columns=tuple((name, kind) for name, kind in meta.defined_columns or ()),
        ttl_seconds=options.time_to_live,
        max_versions=options.max_version,
        deviation_seconds=options.max_time_deviation,
        allow_update=options.allow_update,
    )


def sdk_key(key: KeyColumn) -> tuple[Any, ...]:
    """A column of the primary key."""
    return (key.name, key.type.name, sdk.PK_AUTO_INCR) if key.auto_increment else (key.name, key.type.name)


def sdk_row(row: RowWrite) -> Any:
    """A row change for BatchWriteRow, with or without an existing row."""
    condition = sdk.Condition(sdk.RowExistenceExpectation.IGNORE)
    key = [(name, _sdk_value(value)) for name, value in row.primary_key]
    match row.action:
        case Action.PUT:
            cells = [_sdk_cell(column) for column in row.columns]
            return sdk.PutRowItem(sdk.Row(key, cells), condition)
        case Action.UPDATE:
            return sdk.UpdateRowItem(sdk.Row(key, _sdk_update(row.columns)), condition)
        case Action.DELETE:
            return sdk.DeleteRowItem(sdk.Row(key), condition)


def _key_column(name: str, kind: str, option: object = None) -> KeyColumn:
    return KeyColumn(name, _KEY_TYPES[kind], option is sdk.PK_AUTO_INCR)


def _sdk_update(columns: Sequence[Column]) -> dict[str, list[tuple[Any, ...]]]:
    cells: dict[str, list[tuple[Any, ...]]] = {}
    for column in columns:
        match column.op:
            case CellOp.PUT:
                cells.setdefault("PUT", []).append(_sdk_cell(column))
            case CellOp.DELETE_ONE_VERSION:
                # Three members: with two the SDK sends the version as a value (docs/data-plane.md 3.4).
                cells.setdefault("DELETE", []).append((column.name, None, column.timestamp_ms))
            case CellOp.DELETE_ALL_VERSIONS:
                cells.setdefault("DELETE_ALL", []).append((column.name, None))
            case CellOp.INCREMENT:
                cells.setdefault("INCREMENT", []).append((column.name, column.value))
    return cells


def _sdk_cell(column: Column) -> tuple[Any, ...]:
    value = _sdk_value(column.value)
    return (column.name, value) if column.timestamp_ms is None else (column.name, value, column.timestamp_ms)


def _sdk_value(value: Any) -> Any:
    # The SDK sends bytes as a string; only a bytearray becomes binary (docs/data-plane.md 3.4).
    return bytearray(value) if isinstance(value, bytes) else value
