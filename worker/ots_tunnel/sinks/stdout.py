"""Records as JSON lines on standard output: for looking, not for keeping."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TextIO

from ots_tunnel.sinks import Batch, Guard, Immediate
from ots_tunnel.sinks.json_form import json_form


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
            json.dumps(json_form(record, batch.channel_id), ensure_ascii=False, separators=(",", ":")) + "\n"
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
