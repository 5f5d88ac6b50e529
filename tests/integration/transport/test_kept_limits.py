"""A connection keeps the limits of a write for the next one, and neither a read nor its end notices."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from ots_tunnel.protocol.http.message import HttpRequest
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel.transport.foreign_sockets import limit_sockets
from tests.support.waiting import until

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#: Bytes of a request that leaves in one go, and of one whose last byte waits.
SIZES = (100, 100_000)


class OneConnection:
    """Answers the requests of one connection; `end` is how it ended: b"" politely, otherwise the error."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.end: bytes | OSError | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        with connection:
            connection.settimeout(10)
            received = b""
            try:
                while data := connection.recv(1 << 20):
                    received += data
                    head, found, body = received.partition(b"\r\n\r\n")
                    if found and len(body) == int(head.lower().split(b"content-length:")[1].split()[0]):
                        received = b""
                        connection.sendall(ANSWER)
                self.end = b""
            except OSError as error:
                self.end = error

    def close(self) -> None:
        self._listening.close()
        self._thread.join(10)


@pytest.fixture
def server() -> Iterator[OneConnection]:
    one = OneConnection()
    yield one
    one.close()


def allow() -> None:
    """A fence that is open."""


def user_timeout_ms(port: int) -> int:
    """TCP_USER_TIMEOUT of this process's connection to a port."""
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as sock:
                if sock.type == socket.SOCK_STREAM and sock.getpeername()[1] == port:
                    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        except (OSError, TypeError, IndexError):
            continue  # no socket, not connected, or of another family
    raise AssertionError("no connection")


async def write(transport: AioTransport, size: int, timeout: float) -> None:
    await transport.send(HttpRequest("/Write", {}, bytes(size)), timeout=timeout, before_send=allow)


@pytest.mark.parametrize("size", SIZES)
async def test_a_connection_that_carried_writes_ends_politely(server: OneConnection, size: int) -> None:
    transport = AioTransport(f"http://127.0.0.1:{server.port}")
    for _ in range(3):
        await write(transport, size, timeout=10)
    await transport.close()

    await until(lambda: server.end is not None, what="the connection ends")
    assert server.end == b""


@pytest.mark.parametrize("size", SIZES)
async def test_no_limit_is_longer_than_its_write(server: OneConnection, size: int) -> None:
    transport = AioTransport(f"http://127.0.0.1:{server.port}")
    # so long that the time until it is set is no tenth of them, on whichever machine
    for timeout in (100, 100, 30, 100):
        await write(transport, size, timeout)
        assert 0.8 * timeout * 1000 < user_timeout_ms(server.port) <= 0.9 * timeout * 1000
    await transport.close()


async def test_a_read_behind_a_write_has_the_time_of_the_kernel(server: OneConnection) -> None:
    transport = AioTransport(f"http://127.0.0.1:{server.port}")
    await write(transport, 100, timeout=10)
    await transport.send(HttpRequest("/Read", {}, b"x"), timeout=10)

    assert user_timeout_ms(server.port) == 0
    await transport.close()


async def test_a_library_on_the_same_port_makes_no_limit_longer(server: OneConnection) -> None:
    transport = AioTransport(f"http://127.0.0.1:{server.port}")
    await write(transport, 100, timeout=3)
    assert limit_sockets((server.port,), 10) > 0
    await write(transport, 100, timeout=3)

    assert user_timeout_ms(server.port) <= 0.9 * 3 * 1000
    await transport.close()
