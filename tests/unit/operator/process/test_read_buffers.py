"""A connection that waits keeps no large buffer, and an answer that is larger than its buffer is read as a whole."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import tracemalloc
from asyncio import selector_events, sslproto
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ots_tunnel_operator.process.read_buffers import READ_BYTES, read_in_small_pieces
from tests.support.network.certificates import self_signed

CONNECTIONS = 8
ANSWER = bytes(range(256)) * 4096


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = selector_events._SelectorTransport  # type: ignore[attr-defined]  # noqa: SLF001 - put back afterwards
    for of in (sslproto.SSLProtocol, transport):
        monkeypatch.setattr(of, "max_size", of.max_size)
    read_in_small_pieces()


class Answers:
    """Sends the answer for each byte that comes, on each connection."""

    def __init__(self) -> None:
        self._connections: set[asyncio.Task[None]] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        while await reader.read(1):
            writer.write(ANSWER)
            await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):  # the other end may have broken it
            await writer.wait_closed()

    async def ended(self) -> None:
        """Wait until every connection has been closed at this end, too."""
        await asyncio.gather(*self._connections)


@pytest.fixture(params=["tls", "plain"])
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[int, ssl.SSLContext | None]]:
    serving = connecting = None
    if request.param == "tls":
        certificate = self_signed(tmp_path)
        serving, connecting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=certificate)
        serving.load_cert_chain(certificate)
    answers = Answers()
    server = await asyncio.start_server(answers, "127.0.0.1", 0, ssl=serving)
    async with asyncio.timeout(30), server:
        yield server.sockets[0].getsockname()[1], connecting
        await answers.ended()


async def test_an_open_connection_holds_little_memory(server: tuple[int, ssl.SSLContext | None]) -> None:
    port, tls = server
    name = None if tls is None else "localhost"
    tracemalloc.start()
    try:
        opened = [
            await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name) for _ in range(CONNECTIONS)
        ]
        found = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/asyncio/*")])
    finally:
        tracemalloc.stop()
    for _, writer in opened:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for _, writer in opened))

    # both ends are in this process
    held = sum(trace.size for trace in found.traces) / CONNECTIONS / 2
    assert held < 2 * READ_BYTES


async def test_an_answer_that_is_larger_than_the_buffer_is_whole(server: tuple[int, ssl.SSLContext | None]) -> None:
    port, tls = server
    name = None if tls is None else "localhost"
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name)

    writer.write(b"?")

    assert await reader.readexactly(len(ANSWER)) == ANSWER
    writer.close()
    await writer.wait_closed()


async def test_a_read_takes_no_more_than_asked_for() -> None:
    sizes: list[int] = []
    whole = asyncio.Event()

    class Reading(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            sizes.append(len(data))
            if sum(sizes) == len(ANSWER):
                whole.set()

    answers = Answers()
    server = await asyncio.start_server(answers, "127.0.0.1", 0)
    async with asyncio.timeout(30), server:
        port = server.sockets[0].getsockname()[1]
        transport, _ = await asyncio.get_running_loop().create_connection(Reading, "127.0.0.1", port)
        transport.write(b"?")
        await whole.wait()
        transport.close()
        await answers.ended()

    assert max(sizes) <= READ_BYTES
