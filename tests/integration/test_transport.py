"""The transports against a real socket: guard, deadlines, errors, connections kept."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp.helpers import calculate_timeout_when

from ots_tunnel.errors import ConnectError, ConnectionLost, OwnershipLost, ReadTimeout
from ots_tunnel.protocol.http import HttpRequest, HttpResponse
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel.transport.inprocess import InProcessTransport
from ots_tunnel.transport.sync import SyncTransport

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Ots-RequestId: r\r\n\r\nok"


@dataclass
class RawServer:
    """Answers every request with `answer` when `release` is set, and keeps every byte it got."""

    answer: bytes | None = OK
    received: bytearray = field(default_factory=bytearray)
    requests: int = 0
    connections: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    endpoint: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.received += head
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                self.received += await reader.readexactly(length)
                self.requests += 1
                self.arrived.set()
                await self.release.wait()
                if self.answer is None:
                    return
                writer.write(self.answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    raw = RawServer()
    listening = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
    raw.endpoint = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    raw.release.set()
    async with listening:
        yield raw


def request(body: bytes = b"body") -> HttpRequest:
    return HttpRequest("/Path", {"x-ots-date": "now"}, body)


Send = Callable[..., "asyncio.Future[HttpResponse]"]


@pytest.fixture(params=["aio", "sync"])
async def send(request: pytest.FixtureRequest, server: RawServer) -> AsyncIterator[Send]:
    """`send(request, timeout=..., before_send=...)` of either transport."""
    if request.param == "aio":
        aio = AioTransport(server.endpoint)
        yield lambda message, **options: asyncio.ensure_future(aio.send(message, **options))
        await aio.close()
    else:
        sync = SyncTransport(server.endpoint)
        loop = asyncio.get_running_loop()
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as threads:
            yield lambda message, **options: loop.run_in_executor(threads, lambda: sync.send(message, **options))
        sync.close()


async def test_answers_and_keeps_the_connection(server: RawServer, send: Send) -> None:
    first = await send(request(), timeout=5)
    second = await send(request(), timeout=5)

    assert (first.status, first.body, first.headers["x-ots-requestid"]) == (200, b"ok", "r")
    assert second.body == b"ok"
    assert (server.requests, server.connections) == (2, 1)
    assert server.received.startswith(b"POST /Path HTTP/1.1\r\n")
    assert b"x-ots-date: now" in server.received


async def test_sends_bodies_beyond_a_mebibyte(server: RawServer, send: Send) -> None:
    await send(request(b"x" * 4_000_000), timeout=20)

    assert server.received.endswith(b"x" * 1000)
    assert len(server.received) > 4_000_000


async def test_nothing_is_sent_when_the_guard_refuses(server: RawServer, send: Send) -> None:
    def refuse() -> None:
        raise OwnershipLost("too late")

    with pytest.raises(OwnershipLost, match="too late"):
        await send(request(), timeout=5, before_send=refuse)
    await send(request(b"after"), timeout=5)

    assert server.requests == 1
    assert server.received.count(b"POST") == 1


async def test_a_late_answer_is_a_read_timeout(server: RawServer, send: Send) -> None:
    server.release.clear()

    with pytest.raises(ReadTimeout):
        await send(request(), timeout=0.2)

    server.release.set()


async def test_a_broken_connection_is_lost(server: RawServer, send: Send) -> None:
    server.answer = None

    with pytest.raises(ConnectionLost):
        await send(request(), timeout=5)


async def test_a_cut_answer_is_lost(server: RawServer, send: Send) -> None:
    server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\nConnection: close\r\n\r\nshort"
    pending = send(request(), timeout=1)
    await server.arrived.wait()

    with pytest.raises((ConnectionLost, ReadTimeout)):
        await pending


async def test_nobody_listening_is_a_connect_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
    aio, sync = AioTransport(endpoint), SyncTransport(endpoint)

    with pytest.raises(ConnectError):
        await aio.send(request(), timeout=5)
    with pytest.raises(ConnectError):
        await asyncio.to_thread(sync.send, request(), timeout=5)

    await aio.close()


async def test_compressed_answers_stay_as_they_are_and_cookies_are_dropped(server: RawServer) -> None:
    server.answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nSet-Cookie: a=b\r\nContent-Length: 3\r\n\r\nraw"
    transport = AioTransport(server.endpoint)

    first = await transport.send(request(), timeout=5)
    await transport.send(request(), timeout=5)

    assert first.body == b"raw"
    assert b"cookie" not in server.received.lower()
    await transport.close()


async def test_a_request_that_waits_for_a_connection_is_guarded_when_it_gets_one(server: RawServer) -> None:
    transport = AioTransport(server.endpoint, max_connections=1)
    server.release.clear()
    asked = asyncio.Event()

    def refuse() -> None:
        asked.set()
        raise OwnershipLost("the fence closed while waiting")

    first = asyncio.create_task(transport.send(request(b"first"), timeout=5))
    await server.arrived.wait()
    second = asyncio.create_task(transport.send(request(b"second"), timeout=5, before_send=refuse))
    for _ in range(20):
        await asyncio.sleep(0)
    asked_while_waiting = asked.is_set()
    server.release.set()

    await first
    with pytest.raises(OwnershipLost, match="while waiting"):
        await second
    assert not asked_while_waiting
    assert asked.is_set()
    assert server.requests == 1
    assert b"second" not in server.received
    await transport.close()


async def test_waiting_for_a_connection_counts_as_not_executed(server: RawServer) -> None:
    transport = AioTransport(server.endpoint, max_connections=1)
    server.release.clear()
    first = asyncio.create_task(transport.send(request(), timeout=5))
    await server.arrived.wait()

    with pytest.raises(ConnectError):
        await transport.send(request(), timeout=0.1)

    server.release.set()
    await first
    await transport.close()


async def test_a_long_deadline_is_not_rounded_up(server: RawServer, monkeypatch: pytest.MonkeyPatch) -> None:
    transport, kept = AioTransport(server.endpoint), []
    send = aiohttp.ClientSession.post

    def post(session: aiohttp.ClientSession, *args: Any, **options: Any) -> Any:
        kept.append(options["timeout"])
        return send(session, *args, **options)

    monkeypatch.setattr(aiohttp.ClientSession, "post", post)
    await transport.send(request(), timeout=16.5)
    await transport.close()

    assert calculate_timeout_when(100.25, kept[0].total, kept[0].ceil_threshold) == 116.75


async def test_in_process_keeps_the_same_rules() -> None:
    async def handle(message: HttpRequest) -> HttpResponse:
        if message.body == b"slow":
            await asyncio.sleep(60)
        return HttpResponse(200, {}, message.body)

    transport = InProcessTransport(handle)

    assert (await transport.send(request(), timeout=1)).body == b"body"
    with pytest.raises(ReadTimeout):
        await transport.send(request(b"slow"), timeout=0.01)
    with pytest.raises(OwnershipLost):
        await transport.send(request(), timeout=1, before_send=_refuse)
    await transport.close()
    with pytest.raises(ConnectionLost):
        await transport.send(request(), timeout=1)


def _refuse() -> None:
    raise OwnershipLost("no")
