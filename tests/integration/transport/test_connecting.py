"""Opening connections: silent addresses, lookups that hang, threads that are taken."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from ots_tunnel.errors import ConnectError
from ots_tunnel.protocol.http.message import HttpRequest
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel.transport.connecting import open_socket_blocking
from ots_tunnel.transport.sync import SyncTransport

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
REQUEST = HttpRequest("/Path", {}, b"")


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Of a server at 127.0.0.1 that answers every request."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            writer.write(OK)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield int(server.sockets[0].getsockname()[1])


@pytest.fixture
def silent(port: int) -> Iterator[str]:
    """An address whose port accepts nothing and refuses nothing: its queue of connections is full."""
    address, sockets = "127.0.0.2", [socket.socket()]
    sockets[0].bind((address, port))
    sockets[0].listen(0)
    for _ in range(4):
        waiting = socket.socket()
        waiting.setblocking(False)
        waiting.connect_ex((address, port))
        sockets.append(waiting)
    yield address
    for each in sockets:
        each.close()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Addresses by name, in their order; a function is called."""
    known: dict[str, Any] = {}
    real = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, **options: Any) -> list[Any]:
        if options.get("flags") or host not in known:
            return real(host, port, **options)
        found = known[host]
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port))
            for each in (found() if callable(found) else found)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


async def test_a_silent_address_is_passed_over(port: int, silent: str, names: dict[str, Any]) -> None:
    names["two.example"] = (silent, "127.0.0.1")
    aio, sync = AioTransport(f"http://two.example:{port}"), SyncTransport(f"http://two.example:{port}")

    assert (await aio.send(REQUEST, timeout=5)).body == b"ok"
    assert (await asyncio.to_thread(sync.send, REQUEST, timeout=5)).body == b"ok"

    await aio.close()
    sync.close()


async def test_an_attempt_has_a_deadline(
    port: int, silent: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ots_tunnel.transport.aio.CONNECT_DEADLINE", 0.2)
    monkeypatch.setattr("ots_tunnel.transport.connecting.CONNECT_DEADLINE", 0.2)
    names["one.example"] = (silent,)
    aio, sync = AioTransport(f"http://one.example:{port}"), SyncTransport(f"http://one.example:{port}")
    began = time.monotonic()

    with pytest.raises(ConnectError):
        await aio.send(REQUEST, timeout=30)
    with pytest.raises(ConnectError):
        await asyncio.to_thread(sync.send, REQUEST, timeout=30)

    assert time.monotonic() - began < 10
    await aio.close()


async def test_a_lookup_waits_for_no_thread_of_others(port: int) -> None:
    hang = threading.Event()
    hanging = [asyncio.create_task(asyncio.to_thread(hang.wait, 30)) for _ in range(64)]
    transport = AioTransport(f"http://localhost:{port}")
    await asyncio.sleep(0)

    assert (await transport.send(REQUEST, timeout=10)).body == b"ok"

    hang.set()
    await asyncio.gather(*hanging)
    await transport.close()


async def test_a_lookup_that_hangs_ends_with_its_call(names: dict[str, Any]) -> None:
    hang = threading.Event()
    names["slow.example"] = lambda: hang.wait(30) and ()
    aio, sync = AioTransport("http://slow.example"), SyncTransport("http://slow.example")

    with pytest.raises(ConnectError):
        await aio.send(REQUEST, timeout=0.2)
    with pytest.raises(ConnectError):
        await asyncio.to_thread(sync.send, REQUEST, timeout=0.2)

    hang.set()
    await aio.close()


async def test_a_name_without_an_address_is_a_connect_error() -> None:
    aio, sync = AioTransport("http://no.such.name.invalid"), SyncTransport("http://no.such.name.invalid")

    with pytest.raises(ConnectError, match="no connection to"):
        await aio.send(REQUEST, timeout=20)
    with pytest.raises(ConnectError, match="no connection to"):
        await asyncio.to_thread(sync.send, REQUEST, timeout=20)

    await aio.close()


def test_a_socket_that_opens_too_late_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, given_up, ours = threading.Event(), threading.Event(), socket.socket()

    async def too_late(*_: object) -> socket.socket:
        opened.set()
        given_up.wait(5)
        return ours

    class Impatient(Exception):
        pass

    def interrupted(*_: object) -> socket.socket:
        assert opened.wait(5)
        raise Impatient

    monkeypatch.setattr("ots_tunnel.transport.connecting.open_socket", too_late)
    monkeypatch.setattr("concurrent.futures.Future.result", interrupted)
    with pytest.raises(Impatient):
        open_socket_blocking("host", 1, 5)
    monkeypatch.undo()
    given_up.set()

    for _ in range(500):
        if ours.fileno() == -1:
            break
        time.sleep(0.01)
    assert ours.fileno() == -1
