"""Records as JSON lines on standard output: for looking, not for keeping."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from typing import Any, TextIO

from ots_tunnel.model import Column, Marker
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Guard, Immediate


class StdoutSink(Immediate):
    """Prints one line per record."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._turn = asyncio.Lock()

    def __repr__(self) -> str:
        return "StdoutSink()"

    async def open(self) -> None:
        """Nothing to open."""

    async def write(self, batch: Batch, guard: Guard) -> None:
        """Print every record.

        Raises:
            OwnershipLost: the guard forbids to send.
        """
        lines = [
            json.dumps(line(record, batch), ensure_ascii=False, separators=(",", ":")) + "\n"
            for record in batch.records
        ]
        async with self._turn:
            guard.check()
            # In a thread: a reader that stops reading stops the writing, and must not stop the heartbeat.
            await asyncio.to_thread(self._print, lines)

    async def close(self) -> None:
        """Standard output stays open: it is not ours."""

    def _print(self, lines: list[str]) -> None:
        self._stream.writelines(lines)
        self._stream.flush()


def line(record: Record, batch: Batch) -> dict[str, Any]:
    """One record as a JSON object; bytes in base64, versions in milliseconds, sequence times in microseconds."""
    sequence = record.sequence
    return {
        "action": record.action.name,
        "channel": batch.channel_id,
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
