"""Blocking HTTP for Spark executors and commands: one kept-alive connection per thread.

A request that writes asks for permission before its first and right before its last byte, and is discarded with its
connection when it is given up, as `connection` describes it for coroutines.

Source: docs/protocol.md 1.1; docs/architecture.md rule 4.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Protocol
from urllib.parse import urlsplit

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.wire import AnswerReader, encode_head
from ots_tunnel.transport.attempt import Attempt, translate
from ots_tunnel.transport.connecting import open_socket_blocking
from ots_tunnel.transport.sending_limit import discard_unsent, is_sent, lift_limit, limit_sending

#: Seconds. Connections idle for longer are replaced, see `transport.aio.KEEP_ALIVE`.
KEEP_ALIVE = 15.0
#: Most bytes of an answer that are taken at once.
READ_BYTES = 262_144


class SyncTransport:
    """Calls one endpoint; threads can share it, each has its own connection.

    Args:
        endpoint: `http://host[:port]` or `https://...`, no path.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint.rstrip("/")
        parts = urlsplit(self.endpoint)
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._authority = parts.netloc.rpartition("@")[2]
        self._trust: ssl.SSLContext | None = None
        self._local = threading.local()
        self._open: set[_BlockingConnection] = set()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"SyncTransport({self.endpoint})"

    def send(
        self, request: HttpRequest, *, timeout: float, before_send: Callable[[], None] | None = None
    ) -> HttpResponse:
        """Send one request; `timeout` covers connecting, sending and the whole answer.

        `before_send` runs when the connection is open, and again right before the last byte of the request. If it
        raises, the request is not executed and its error is raised here.

        Raises:
            ConnectError: no connection; the request was not executed.
            ReadTimeout: no complete answer in time.
            ConnectionLost: the connection broke.
            CodecError: a header has a line break.
        """
        deadline = time.monotonic() + timeout
        head, attempt = encode_head(self._authority, request), Attempt(before_send)
        connection: _BlockingConnection | None = None
        try:
            connection = self._connection(deadline)
            attempt.ask()
            response, reuse = connection.exchange(head, request.body, attempt, deadline)
        except BaseException as error:
            if connection is not None and attempt.started:
                self._drop(connection, discard=True)
            if isinstance(error, (OSError, CodecError)) and error is not attempt.refusal:
                raise translate(error, self.endpoint, started=attempt.started) from error
            raise
        if not reuse:
            self._drop(connection)
        self._local.used_at = time.monotonic()
        return response

    def close(self) -> None:
        """Close every thread's connection."""
        with self._lock:
            connections, self._open = self._open, set()
        for connection in connections:
            connection.close()

    def _connection(self, deadline: float) -> _BlockingConnection:
        connection: _BlockingConnection | None = getattr(self._local, "connection", None)
        if connection is not None and connection.is_open:
            if time.monotonic() - self._local.used_at < KEEP_ALIVE:
                return connection
            self._drop(connection)
        connection = _BlockingConnection(self._connect(deadline))
        self._local.connection = connection
        self._local.used_at = time.monotonic()
        with self._lock:
            self._open.add(connection)
        return connection

    def _connect(self, deadline: float) -> socket.socket:
        sock = open_socket_blocking(self._host, self._port, _left(deadline))
        try:
            sock.settimeout(_left(deadline))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not self._secure:
                return sock
            if self._trust is None:
                self._trust = ssl.create_default_context()
            return self._trust.wrap_socket(sock, server_hostname=self._host)
        except BaseException:
            sock.close()
            raise

    def _drop(self, connection: _BlockingConnection, *, discard: bool = False) -> None:
        connection.close(discard=discard)
        with self._lock:
            self._open.discard(connection)


class _BlockingConnection:
    """A connected socket, which carries one request at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.is_open = True

    def exchange(self, head: bytes, body: bytes, attempt: Attempt, deadline: float) -> tuple[HttpResponse, bool]:
        """The answer to a request, and whether the connection can carry another one."""
        if attempt.before_send is None:
            self._send(head + body, deadline)
            return self._read(deadline)
        limit_sending(self._sock, _left(deadline))
        whole = memoryview(head + body)
        self._send(whole[:-1], deadline)
        # The last byte must not wait behind others, where its permission would get old.
        if not is_sent(self._sock, _left(deadline)):
            raise TimeoutError
        attempt.ask()
        limit_sending(self._sock, _left(deadline))
        self._send(whole[-1:], deadline)
        answer = self._read(deadline)
        lift_limit(self._sock)
        return answer

    def close(self, *, discard: bool = False) -> None:
        """Close it; `discard`: bytes that the kernel has not sent do not leave any more."""
        if self.is_open and discard:
            discard_unsent(self._sock)
        self.is_open = False
        self._sock.close()

    def _send(self, data: bytes | memoryview, deadline: float) -> None:
        self._sock.settimeout(_left(deadline))
        self._sock.sendall(data)

    def _read(self, deadline: float) -> tuple[HttpResponse, bool]:
        reader = AnswerReader()
        while True:
            # Every wait gets the rest of the deadline, so that a slow answer cannot outlive it.
            self._sock.settimeout(_left(deadline))
            data = self._sock.recv(READ_BYTES)
            answer = reader.feed(data) if data else reader.end()
            if answer is not None:
                return answer, reader.may_reuse
            if not data:
                raise ConnectionResetError("closed by the other side")


class BlockingTransport(Protocol):
    """The interface of `SyncTransport`, which tests implement too."""

    def send(
        self, request: HttpRequest, *, timeout: float, before_send: Callable[[], None] | None = None
    ) -> HttpResponse:
        """Send within `timeout` seconds in total."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
