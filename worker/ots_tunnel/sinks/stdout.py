"""Records as JSON lines on standard output: for looking, not for keeping."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable
from typing import Protocol, Self

from ots_tunnel.config import StdoutSinkConfig, WorkerConfig
from ots_tunnel.errors import SinkError, SinkRejected
from ots_tunnel.sinks import Batch, Guard, Immediate
from ots_tunnel.sinks.json_record import json_form


class Lines(Protocol):
    """Where lines go."""

    def writelines(self, lines: Iterable[str], /) -> None:
        """Take them, or at least keep them until `flush`."""
        ...

    def flush(self) -> None:
        """Let go of what is kept."""
        ...


class Unbuffered:
    """Standard output; what it did not take is not kept, since it comes again."""

    def writelines(self, lines: Iterable[str], /) -> None:
        """Write all of them."""
        left = memoryview("".join(lines).encode())
        while left:
            left = left[os.write(sys.stdout.fileno(), left) :]

    def flush(self) -> None:
        """Nothing is kept."""


class StdoutSink(Immediate):
    """Prints one line per record."""

    def __init__(self, stream: Lines | None = None) -> None:
        self._stream = stream or Unbuffered()
        self._turn = asyncio.Lock()

    @classmethod
    def from_config(cls, config: WorkerConfig, section: StdoutSinkConfig) -> Self:
        """The sink of a worker's document."""
        return cls()

    def __repr__(self) -> str:
        return "StdoutSink()"

    async def open(self) -> None:
        """Nothing to open."""

    async def write(self, batch: Batch, guard: Guard) -> None:
        """Print every record.

        Raises:
            OwnershipLost: the guard forbids to send. SinkRejected: nobody reads any more. SinkError: no room.
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
        try:
            self._stream.writelines(lines)
            self._stream.flush()
        except BrokenPipeError as error:
            raise SinkRejected("BrokenPipe", "sink.stdout: nobody reads standard output any more") from error
        except OSError as error:
            raise SinkError(f"sink.stdout: {error.strerror}") from error
