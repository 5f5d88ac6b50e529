"""Sockets of libraries are limited again after the process had no descriptor left."""

from __future__ import annotations

import socket
from collections.abc import Collection

import pytest

from ots_tunnel.transport import foreign_sockets
from ots_tunnel.transport.foreign_sockets import limit_sockets, limited_sockets
from tests.support.sinks.descriptors import no_descriptor_left
from tests.support.waiting import until


def is_limited(sock: socket.socket) -> bool:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) > 0


async def test_a_look_without_a_descriptor_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = []

    def look(ports: Collection[int], seconds: float) -> int:
        try:
            return limit_sockets(ports, seconds)
        except OSError as error:
            failed.append(error)
            raise

    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(foreign_sockets, "limit_sockets", look)
        port = server.getsockname()[1]
        async with limited_sockets((port,), 5):
            with no_descriptor_left():
                await until(lambda: failed)
            with socket.create_connection(server.getsockname()) as later:
                await until(lambda: is_limited(later))


async def test_no_write_begins_while_sockets_cannot_be_looked_at() -> None:
    with no_descriptor_left(), pytest.raises(OSError, match="Too many open files"):
        async with limited_sockets((1,), 5):
            pass
