"""Blocking HTTP for Spark executors and commands: one kept-alive connection per thread, through http.client.

Source: docs/protocol.md 1.1; docs/architecture.md rule 4.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable
from typing import Protocol
from urllib.parse import urlsplit

from ots_tunnel.errors import ConnectError, ConnectionLost, ReadTimeout
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse

#: Seconds. Connections idle for longer are replaced, see `transport.aio.KEEP_ALIVE`.
KEEP_ALIVE = 15.0


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
        self._port = parts.port
        self._local = threading.local()
        self._open: set[http.client.HTTPConnection] = set()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"SyncTransport({self.endpoint})"

    def send(
        self, request: HttpRequest, *, timeout: float, before_send: Callable[[], None] | None = None
    ) -> HttpResponse:
        """Send one request; `timeout` covers connecting, sending and the whole answer.

        `before_send` runs when the connection is open. If it raises, nothing is sent and its error is raised here.

        Raises:
            ConnectError: no connection; the request was not executed.
            ReadTimeout: no complete answer in time.
            ConnectionLost: the connection broke.
        """
        deadline = time.monotonic() + timeout
        connection = self._connection(deadline)
        if before_send is not None:
            before_send()
        try:
            response = self._exchange(connection, request, deadline)
        except TimeoutError as error:
            self._drop(connection)
            raise ReadTimeout(f"no complete answer from {self.endpoint} in time") from error
        except (http.client.HTTPException, OSError) as error:
            self._drop(connection)
            raise ConnectionLost(f"connection to {self.endpoint} broke: {error or type(error).__name__}") from error
        except BaseException:
            self._drop(connection)
            raise
        self._local.used_at = time.monotonic()
        return response

    def close(self) -> None:
        """Close every thread's connection."""
        with self._lock:
            connections, self._open = self._open, set()
        for connection in connections:
            connection.close()

    def _exchange(self, connection: http.client.HTTPConnection, request: HttpRequest, deadline: float) -> HttpResponse:
        _limit(connection, deadline)
        connection.request("POST", request.path, request.body, dict(request.headers))
        _limit(connection, deadline)
        answer = connection.getresponse()
        pieces = []
        # Closed in every case: read1 leaves the answer open at its end, and an open answer blocks the connection.
        with contextlib.closing(answer):
            while True:
                _limit(connection, deadline)
                piece = answer.read1(1 << 20)
                if not piece:
                    break
                pieces.append(piece)
        if answer.length:
            raise http.client.IncompleteRead(b"", answer.length)
        headers = {name.lower(): value for name, value in answer.getheaders()}
        if answer.will_close:
            self._drop(connection)
        return HttpResponse(answer.status, headers, b"".join(pieces))

    def _connection(self, deadline: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is not None and connection.sock is not None:
            if time.monotonic() - self._local.used_at < KEEP_ALIVE:
                return connection
            self._drop(connection)
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=max(deadline - time.monotonic(), 0.001))
        try:
            connection.connect()
        except (http.client.HTTPException, OSError) as error:
            connection.close()
            raise ConnectError(f"no connection to {self.endpoint}: {error or type(error).__name__}") from error
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._local.connection = connection
        self._local.used_at = time.monotonic()
        with self._lock:
            self._open.add(connection)
        return connection

    def _drop(self, connection: http.client.HTTPConnection) -> None:
        connection.close()
        with self._lock:
            self._open.discard(connection)


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


def _limit(connection: http.client.HTTPConnection, deadline: float) -> None:
    # Every wait gets the rest of the deadline, so that a slow answer cannot outlive it.
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    if connection.sock is not None:
        connection.sock.settimeout(left)
