"""A proxy before the emulator that counts what a program asks for and what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_PIECE = 1 << 18
#: Begins every answer. No row of the bench has it.
_BEGIN = b"HTTP/1.1 "


class CountingProxy:
    """Passes connections on.

    Args:
        port: of the emulator on loopback.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        #: Both sides of each connection, by the task that serves it.
        self._open: dict[asyncio.Task[None], tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = {}
        #: Answers since the last `reset`, each to one request.
        self.answers = 0
        #: Bytes of these, headers included.
        self.answer_bytes = 0

    def reset(self) -> None:
        """Count from 0 on."""
        self.answers = self.answer_bytes = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it."""
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        handler = asyncio.current_task()
        assert handler is not None
        self._open[handler] = writer, back
        await asyncio.gather(_pass_on(reader, back), self._answers(there, writer))
        for each in (writer, back):
            with suppress(ConnectionError):
                await each.wait_closed()
        del self._open[handler]

    async def close(self) -> None:
        """End all connections."""
        for each in (writer for pair in self._open.values() for writer in pair):
            each.close()
        await asyncio.gather(*self._open)

    async def _answers(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tail = b""
        with suppress(ConnectionError):
            while data := await there.read(_PIECE):
                # a beginning may lie across two pieces
                looked_at = tail + data
                self.answers += looked_at.count(_BEGIN)
                self.answer_bytes += len(data)
                tail = looked_at[1 - len(_BEGIN) :]
                writer.write(data)
                await writer.drain()
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def counting_proxy(port: int) -> AsyncIterator[tuple[CountingProxy, str]]:
    """A proxy to a port of loopback, and its endpoint."""
    proxy = CountingProxy(port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    try:
        yield proxy, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await proxy.close()
