"""Records as lines of output: JSON for programs, text for a terminal. Pure."""

from __future__ import annotations

import json

from ots_tunnel.model import Action, CellOp, ChannelId
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.json_record import json_form
from ots_tunnel.worker.status.iso_time import iso_time

#: Characters of a value that a line of text shows.
VALUE_CHARACTERS = 40


def json_line(record: Record, channel_id: ChannelId, *, ascii_only: bool = False) -> str:
    """One record as a JSON object, in the form of the `files` and `stdout` sinks.

    Args:
        ascii_only: escape all other characters, for an output that does not have each of them.
    """
    return json.dumps(json_form(record, channel_id), ensure_ascii=ascii_only)


def text_line(record: Record, most: int | None = VALUE_CHARACTERS) -> str:
    """One record as a line of text: time, action, key, cells.

    Args:
        most: characters of a value that are shown; None shows all.
    """
    sequence = record.sequence
    when = iso_time(sequence.timestamp_us / 1e6) if sequence is not None else "existing row"
    key = ", ".join(f"{name}={_shown(value, most)}" for name, value in record.primary_key)
    cells = " ".join(_cell(column, most) for column in record.columns) if record.action is not Action.DELETE else ""
    return f"{when:24}  {record.action.name:6}  {key}  {cells}".rstrip()


def _cell(column: Column, most: int | None) -> str:
    version = "" if column.timestamp_ms is None else f"@{column.timestamp_ms}"
    match column.op:
        case CellOp.PUT:
            return f"{column.name}={_shown(column.value, most)}"
        case CellOp.DELETE_ONE_VERSION:
            return f"-{column.name}{version}"
        case _:
            return f"-{column.name}"


def _shown(value: object, most: int | None) -> str:
    text = repr(value)
    return text if most is None or len(text) <= most else f"{text[: most - 3]}..."
