"""The JSON form of a record, the same in every sink that writes text."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from ots_tunnel.model import CellOp, ChannelId, KeyValue, Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record

#: Types of values that are their own JSON form; asked first, because nearly every value has one of them.
_AS_THEY_ARE = frozenset((str, int, bool))

#: The text of a JSON document, on one line; one encoder for all, because making one takes as long as a small record.
json_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_form(record: Record, channel_id: ChannelId) -> dict[str, Any]:
    """One record as a JSON object; versions in milliseconds, sequence times in microseconds.

    A value without a JSON form is an object: ``{"base64": ...}``, ``{"double": "nan"}``, ``{"marker": ...}``.
    """
    sequence = record.sequence
    return {
        "action": record.action.name,
        "channel": channel_id,
        "sequence": None if sequence is None else [sequence.epoch, sequence.timestamp_us, sequence.row_index],
        "key": json_key(record),
        "columns": [_column(column) for column in record.decode_columns()],
    }


def json_key(record: Record) -> dict[str, Any]:
    """The key of a record as a JSON object."""
    return {name: json_value(value) for name, value in record.primary_key}


def key_of_json(key: dict[str, Any]) -> PrimaryKey:
    """The primary key in the member `key` of `json_form`.

    Raises:
        ValueError, KeyError: `json_form` did not make it.
    """
    return tuple((name, _key_value(value)) for name, value in key.items())


def _key_value(value: object) -> KeyValue:
    match value:
        case int() | str():
            return value
        case {"base64": str(text)}:
            return base64.b64decode(text, validate=True)
        case {"marker": str(name)}:
            return Marker[name]
        case _:
            raise ValueError(f"a key holds a {type(value).__name__}")


def _column(column: Column) -> dict[str, Any]:
    op, value = column.op, column.value
    cell: dict[str, Any] = {"name": column.name, "op": "PUT" if op is CellOp.PUT else op.name}
    if value is not None:
        cell["value"] = value if type(value) in _AS_THEY_ARE else json_value(value)
    if column.timestamp_ms is not None:
        cell["version"] = column.timestamp_ms
    return cell


def json_value(value: object) -> object:
    """The JSON form of a value, of a key or of a column."""
    match value:
        case bytes():
            return {"base64": base64.b64encode(value).decode()}
        case float() if not math.isfinite(value):
            return {"double": str(value)}
        case Marker():
            return {"marker": value.name}
        case _:
            return value
