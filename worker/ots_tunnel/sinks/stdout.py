"""A sink that prints records as JSON lines, to look at them."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sys
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Protocol, Self

from ots_tunnel.config import SinkDocument, StdoutSinkConfig
from ots_tunnel.errors import SinkError, SinkRejected
from ots_tunnel.sinks import Batch, Contact, Guard, Immediate, PageCost
from ots_tunnel.sinks.contact import Writes
from ots_tunnel.sinks.json_bytes import next_lines
from ots_tunnel.sinks.slices import Turns
from ots_tunnel.threads import DaemonThreads


class Lines(Protocol):
    """A destination of lines."""

    def writelines(self, lines: Iterable[bytes], /) -> None:
        """Write lines, or keep them until `flush`."""
        ...

    def flush(self) -> None:
        """Write the lines that are kept."""
        ...


_NEWLINE = ord("\n")
#: Pieces that Linux takes in one call.
MOST_PIECES = 1_024
#: Bytes that a pipe holds for a reader who is behind; the most that Linux gives to a process without rights.
PIPE_BYTES = 1_048_576


class Unbuffered:
    """Standard output without a buffer: lines that it did not accept are not kept, since their records come again."""

    def __init__(self) -> None:
        #: What ends the line that a failure has torn: the next line must not be glued to it.
        self._end = b""

    def widen(self) -> None:
        """Let a pipe hold more than the usual 64 KiB: each time that it is full costs a wait for the reader."""
        with contextlib.suppress(OSError):  # it is no pipe, or the kernel has given out as much as it may
            fcntl.fcntl(sys.stdout.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def writelines(self, lines: Iterable[bytes], /) -> None:
        """Write all of them."""
        left = deque(memoryview(piece) for piece in (self._end, *lines) if piece)
        while left:
            self._remove(left, os.writev(sys.stdout.fileno(), tuple(islice(left, MOST_PIECES))))

    def _remove(self, left: deque[memoryview], written: int) -> None:
        """Remove what was written, bytes, from what is left."""
        while written:
            piece = left.popleft()
            if written < len(piece):
                left.appendleft(piece[written:])
                piece = piece[:written]
            written -= len(piece)
            self._end = b"" if piece[-1] == _NEWLINE else b"\n"

    def flush(self) -> None:
        """No lines are kept."""


#: Bytes that are printed at a time.
PRINTED_BYTES = 1_048_576


class StdoutSink(Immediate):
    """Prints one line per record."""

    cost = PageCost(5, 150)

    def __init__(self, stream: Lines | None = None) -> None:
        self._unbuffered = Unbuffered()
        self._stream = stream or self._unbuffered
        self._turn = asyncio.Lock()
        self._threads = DaemonThreads("stdout", 1)
        self._turns = Turns()
        self._writes = Writes()

    @classmethod
    def from_config(cls, config: SinkDocument, section: StdoutSinkConfig) -> Self:
        """The sink of a worker's document."""
        return cls()

    def __repr__(self) -> str:
        return "StdoutSink()"

    async def open(self) -> None:
        """Nothing to open: standard output is there."""
        if self._stream is self._unbuffered:
            self._unbuffered.widen()
        self._writes.looked()

    async def write(self, batch: Batch, guard: Guard) -> None:
        """Print every record.

        Raises:
            OwnershipLost: the guard forbids to send.
            SinkRejected: the reader has closed it.
            SinkError: it accepts no more, such as a full disk.
        """
        async with self._turn:
            lines, size = list[bytes](), 0
            records, at = list(batch.records), 0
            while at < len(records):
                if at:
                    await self._turns.next()
                portion, at = next_lines(records, at, batch.channel_id)
                lines.append(portion)
                size += len(portion)
                if size >= PRINTED_BYTES:
                    await self._print(lines, guard)
                    lines, size = [], 0
            await self._print(lines, guard)

    async def close(self) -> None:
        """Standard output stays open for the process."""

    def contact(self) -> Contact:
        """See `Channels.contact`."""
        return self._writes.contact

    async def _print(self, lines: list[bytes], guard: Guard) -> None:
        guard.check()
        # In a thread: a reader that pauses blocks the write, which must not block the heartbeat.
        await self._threads.run(self._write_out, lines)
        self._writes.confirmed()

    def _write_out(self, lines: list[bytes]) -> None:
        try:
            self._stream.writelines(lines)
            self._stream.flush()
        except BrokenPipeError as error:
            raise SinkRejected("BrokenPipe", "sink.stdout: the reader of standard output has closed it") from error
        except OSError as error:
            raise SinkError(f"sink.stdout: {error.strerror}") from error
