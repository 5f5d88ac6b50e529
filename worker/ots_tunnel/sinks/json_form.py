"""A record as JSON, the same in every sink that writes text."""

from __future__ import annotations

import base64
from typing import Any

from ots_tunnel.model import ChannelId, Column, Marker
from ots_tunnel.protocol.record import Record


def json_form(record: Record, channel_id: ChannelId) -> dict[str, Any]:
    """One record as a JSON object; bytes in base64, versions in milliseconds, sequence times in microseconds."""
    sequence = record.sequence
    return {
        "action": record.action.name,
        "channel": channel_id,
        "sequence": None if sequence is None else [sequence.epoch, sequence.timestamp_us, sequence.row_index],
        "key": {name: _plain(value) for name, value in record.primary_key},
        "columns": [_column(column) for column in record.columns],
    }


def _column(column: Column) -> dict[str, Any]:
    cell: dict[str, Any] = {"name": column.name, "op": column.op.name}
    if column.value is not None:
        cell["value"] = _plain(column.value)
    if column.timestamp_ms is not None:
        cell["version"] = column.timestamp_ms
    return cell


def _plain(value: object) -> object:
    match value:
        case bytes():
            return {"base64": base64.b64encode(value).decode()}
        case Marker():
            return {"marker": value.name}
        case _:
            return value
