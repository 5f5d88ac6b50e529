"""HTTP by hand: requests are encoded and signed beforehand, so that the client of a load needs little CPU."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from google.protobuf.message import Message

from ots_tunnel.model import Credentials
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS, TUNNEL_OPERATIONS
from ots_tunnel.protocol.http.rpc import build_request

CREDENTIALS = Credentials("test-id", "test-secret")
INSTANCE = "demo"
_DEADLINE = 60.0
_PIECE = 1 << 20
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def signed(name: str, message: Message | bytes) -> bytes:
    """Headers and body of one call; valid while the service accepts its date."""
    operation = TUNNEL_OPERATIONS.get(name) or TABLE_OPERATIONS[name]
    request = build_request(
        operation, message, instance=INSTANCE, credentials=CREDENTIALS, now=time.time(), trace_id="bench"
    )
    headers = {"host": "bench", "content-length": str(len(request.body)), **request.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {request.path} HTTP/1.1\r\n{lines}\r\n".encode() + request.body


class RawConnection:
    """One connection that is kept alive; one call at a time."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), _DEADLINE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, request: bytes) -> None:
        self._socket.sendall(request)

    def receive(self) -> bytes:
        """The body of the next answer, which must be a success."""
        found = b""
        while (end := found.find(b"\r\n\r\n")) < 0:
            found += self._piece()
        head, pieces = found[:end], [found[end + 4 :]]
        length = _LENGTH.search(head)
        assert length is not None, head
        missing = int(length[1]) - len(pieces[0])
        while missing > 0:
            pieces.append(self._piece())
            missing -= len(pieces[-1])
        body = b"".join(pieces)
        assert head.startswith(b"HTTP/1.1 200"), (head, body)
        return body

    def _piece(self) -> bytes:
        piece = self._socket.recv(_PIECE)
        assert piece, "the emulator closed the connection"
        return piece

    def exchange(self, request: bytes) -> bytes:
        """Make one call."""
        self.send(request)
        return self.receive()

    def call(self, name: str, **fields: Any) -> Any:
        """Make one call with typed messages."""
        operation = TUNNEL_OPERATIONS.get(name) or TABLE_OPERATIONS[name]
        body = self.exchange(signed(name, operation.request_type(**fields)))
        return operation.response_type.FromString(body)


def play(port: int, clients: int, requests: Iterable[bytes]) -> int:
    """Send requests from `clients` clients, each with one under way; return the bytes of all answers.

    The emulator answers in the order of arrival, so taking turns keeps every client busy.
    """
    connections = [RawConnection(port) for _ in range(clients)]
    waiting: list[RawConnection] = []
    size = 0
    try:
        for number, request in enumerate(requests):
            connection = connections[number % clients]
            if len(waiting) == clients:
                size += len(waiting.pop(0).receive())
            connection.send(request)
            waiting.append(connection)
        return size + sum(len(connection.receive()) for connection in waiting)
    finally:
        for connection in connections:
            connection.close()
