"""A page of a worker is read by a connection of its own, which is closed whatever comes of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel_operator import names
from ots_tunnel_operator.observe import worker_page
from ots_tunnel_operator.observe.worker_page import WorkerPages
from tests.support.waiting import until

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


@dataclass
class Peer:
    """Sends these pieces as its answer, and closes the connection where `closes`."""

    pieces: tuple[bytes, ...] = (HEAD + b"Content-Length: 2\r\n\r\n{}",)
    closes: bool = True
    requests: list[bytes] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether the reader has closed the connection."""
    connections: list[asyncio.Task[None]] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self.connections.append(connection)
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        for piece in self.pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if self.closes:
            writer.close()
        with contextlib.suppress(ConnectionResetError):
            await reader.read()
        self.ended.set()
        writer.close()
        with contextlib.suppress(OSError):  # the other end may have broken it
            await writer.wait_closed()


@pytest.fixture
async def peer(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Peer]:
    peer = Peer()
    server = await asyncio.start_server(lambda reader, writer: peer.answer(reader, writer), "127.0.0.1", 0)
    monkeypatch.setattr(names, "WORKER_PORT", server.sockets[0].getsockname()[1])
    async with asyncio.timeout(20):
        yield peer
        await asyncio.gather(*peer.connections, return_exceptions=True)
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize(
    "pieces",
    [
        (HEAD + b'Content-Length: 9\r\n\r\n{"a": 17}',),
        (HEAD + b"Content-Length: 9\r\n\r\n", b'{"a"', b": 17}"),
        (HEAD + b"\r\n", b'{"a": 17}'),
        (HEAD + b'Transfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n5\r\n: 17}\r\n0\r\n\r\n',),
    ],
    ids=["at once", "in pieces", "up to the end of the connection", "chunked"],
)
async def test_an_answer_is_read_however_it_is_sent(peer: Peer, pieces: tuple[bytes, ...]) -> None:
    peer.pieces = pieces

    assert await WorkerPages().read("127.0.0.1", "/channels") == b'{"a": 17}'
    assert peer.requests[0].startswith(b"GET /channels HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"Connection: close\r\n" in peer.requests[0]


async def test_a_connection_that_the_worker_leaves_open_is_closed(peer: Peer) -> None:
    peer.closes = False

    assert await WorkerPages().read("127.0.0.1", "/channels") == b"{}"
    await peer.ended.wait()


async def test_an_error_of_the_worker_is_no_page(peer: Peer) -> None:
    peer.pieces = (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}",)

    assert await WorkerPages().read("127.0.0.1", "/channels") is None


@pytest.mark.parametrize("pieces", [(), (HEAD,), (HEAD + b"Content-Length: 9\r\n\r\n{}",)])
async def test_an_answer_that_is_cut_is_an_error(peer: Peer, pieces: tuple[bytes, ...]) -> None:
    peer.pieces = pieces

    with pytest.raises(ConnectionResetError):
        await WorkerPages().read("127.0.0.1", "/channels")


async def test_what_is_no_answer_is_an_error(peer: Peer) -> None:
    peer.pieces = (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"more")

    with pytest.raises(CodecError):
        await WorkerPages().read("127.0.0.1", "/channels")


async def test_a_caller_that_gives_up_closes_the_connection(peer: Peer) -> None:
    peer.pieces, peer.closes = (), False

    reading = asyncio.create_task(WorkerPages().read("127.0.0.1", "/channels"))
    await until(lambda: bool(peer.requests), what="the request has come")
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await peer.ended.wait()


async def test_the_address_of_a_pod_may_be_of_either_kind(peer: Peer) -> None:
    with pytest.raises(OSError, match="::1"):
        await WorkerPages().read("::1", "/channels")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_page, "SMALL_BYTES", 256)


@pytest.mark.usefixtures("small")
async def test_a_large_page_is_read_as_a_whole(peer: Peer) -> None:
    body = b"x" * 1_000_000
    peer.pieces = (HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode(), body)

    assert await WorkerPages().read("127.0.0.1", "/channels") == body


@pytest.mark.usefixtures("small")
async def test_large_pages_wait_for_each_other_and_small_ones_do_not(peer: Peer) -> None:
    """A thousand workers may answer 8 MiB each; what waits is in the kernel, not in the operator's memory."""
    pages, hung, large = WorkerPages(), [], HEAD + b"Content-Length: 2000000\r\n\r\n" + b"x" * 1_000_000
    peer.pieces, peer.closes = (large,), False
    for _ in range(worker_page.LARGE + 3):
        hung.append(asyncio.create_task(pages.read("127.0.0.1", "/channels")))
    await until(lambda: pages.reading == worker_page.LARGE and pages.waiting == 3)
    peer.pieces, peer.closes = Peer.pieces, True

    assert await pages.read("127.0.0.1", "/channels") == b"{}"

    # who gives up makes room
    hung[0].cancel()
    await until(lambda: pages.waiting == 2)
    for task in hung:
        task.cancel()
    await asyncio.gather(*hung, return_exceptions=True)
    assert (pages.reading, pages.waiting) == (0, 0)
