"""HTTP for asyncio: one pool of kept-alive connections to one endpoint.

Theory of operation
-------------------
Parts. An `AioTransport` holds idle connections, the busy ones, and a semaphore for the limit of calls in progress. A
`Connection` (`transport.connection`) carries one request at a time. `protocol.http.wire` writes the head of a request
and reads answers. A general HTTP client costs as much CPU for a page as all other work on it, and a worker calls one
endpoint in one way; so this one does only that.

One call, in this order, all within its timeout:

1. Wait for a slot, if calls are limited.
2. Take the idle connection that was used last, if it is usable and was used in the last 15 s (`KEEP_ALIVE`); otherwise
   open one. The most recently used connection comes first, so that surplus ones grow old and are closed.
3. Call `before_send`. If it raises, nothing was sent, and its error leaves unchanged.
4. Write the request and await the answer. Before the rest of a large body `before_send` is called again; if it raises
   then, the connection is reset, the request was not executed, and the error leaves unchanged. When the answer begins,
   `before_answer` is awaited before more of it is taken; the timeout stands still meanwhile.
5. Return the connection to the idle ones if it can carry another request, and close idle ones older than 15 s.

Errors. Before step 4 every failure is a `ConnectError`: the request was not executed. From step 4 on a timeout is a
`ReadTimeout` and any other failure a `ConnectionLost`: the request may have been executed. Nothing is repeated here;
`client.retry` decides. A timeout or a cancellation resets the connection, so unsent bytes never leave later, neither
those of this process nor those that the kernel holds (`sending_limit`). The socket is closed when the error is raised.

Example: a read is cancelled while its answer arrives. Step 4 ends with CancelledError, step 5 finds a connection that
is not usable and aborts it, and the next call opens a new one.

Source: docs/protocol.md 1.1; docs/architecture.md rule 4.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.limits import ANSWER_LIMIT
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.wire import encode_head
from ots_tunnel.transport import BeforeAnswer
from ots_tunnel.transport.attempt import Attempt, translate
from ots_tunnel.transport.connecting import CONNECT_DEADLINE, lookup_threads, open_socket
from ots_tunnel.transport.connection import READ_BYTES, Connection
from ots_tunnel.transport.trust import system_trust

#: Seconds, own choice: less than the idle timeout of common servers, so that no call uses a connection that is closing.
KEEP_ALIVE = 15.0


class AioTransport:
    """Calls one endpoint over a pool of connections.

    Args:
        endpoint: `http://host[:port]` or `https://...`, no path.
        max_connections: calls in progress at the same time; others wait. 0 means no limit.
        answer_limit: most bytes of the body of an answer, by the path of its request.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        max_connections: int = 100,
        answer_limit: Callable[[str], int] = lambda path: ANSWER_LIMIT,
    ) -> None:
        self.endpoint = endpoint.rstrip("/")
        parts = urlsplit(self.endpoint)
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._authority = parts.netloc.rpartition("@")[2]
        self._answer_limit = answer_limit
        self._slots = asyncio.Semaphore(max_connections) if max_connections else None
        #: Sorted by last use; the last one is used next.
        self._idle: deque[Connection] = deque()
        self._busy: set[Connection] = set()
        self._trust: ssl.SSLContext | None = None
        self._lookups = lookup_threads(self._host)
        self._small = memoryview(bytearray(READ_BYTES))
        self._closed = False

    def __repr__(self) -> str:
        return f"AioTransport({self.endpoint})"

    @property
    def reusable_connections(self) -> int:
        """Idle connections that the next request can use."""
        return sum(connection.is_usable for connection in self._idle)

    async def send(
        self,
        request: HttpRequest,
        *,
        timeout: float,
        before_send: Callable[[], None] | None = None,
        before_answer: BeforeAnswer | None = None,
    ) -> HttpResponse:
        """Send one request; `timeout` covers waiting for a connection, sending and the whole answer.

        Raises:
            ConnectError: no connection; the request was not executed.
            ReadTimeout: no complete answer in time.
            ConnectionLost: the connection broke.
            CodecError: a header has a line break.
        """
        head, attempt = encode_head(self._authority, request), Attempt(before_send)
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            async with asyncio.timeout_at(deadline) as limit:
                if self._slots is None:
                    return await self._exchange(head, request, attempt, limit, before_answer)
                async with self._slots:
                    return await self._exchange(head, request, attempt, limit, before_answer)
        except (TimeoutError, OSError, CodecError) as error:
            if error is attempt.refusal:
                raise
            raise translate(error, self.endpoint, started=attempt.started) from error

    async def close(self) -> None:
        """Close the connections; calls in progress and later calls fail."""
        self._closed = True
        for connection in (*self._idle, *self._busy):
            connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)  # the loop closes the sockets in its next round

    async def _exchange(
        self,
        head: bytes,
        request: HttpRequest,
        attempt: Attempt,
        limit: asyncio.Timeout,
        before_answer: BeforeAnswer | None,
    ) -> HttpResponse:
        loop, deadline = asyncio.get_running_loop(), limit.when()
        assert deadline is not None, "every request has a limit"
        connection, most = self._kept() or await self._connect(), self._answer_limit(request.path)

        def ask() -> None:
            attempt.ask()
            left = deadline - loop.time()
            if left <= 0:
                raise TimeoutError  # the process was stopped, or busy; the loop has not looked at its timers yet
            connection.limit_sending(left)

        self._busy.add(connection)
        try:
            if attempt.before_send is None:
                attempt.ask()
                return await connection.exchange(head, request.body, None, before_answer, limit, most)
            ask()
            return await connection.exchange(head, request.body, ask, before_answer, limit, most)
        finally:
            self._busy.discard(connection)
            self._give_back(connection)
            await connection.closed()

    def _kept(self) -> Connection | None:
        oldest = asyncio.get_running_loop().time() - KEEP_ALIVE
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable and connection.used_at > oldest:
                return connection
            connection.abort()
        return None

    async def _connect(self) -> Connection:
        if self._closed:
            raise ConnectionAbortedError("closed on this side")
        if self._secure and self._trust is None:
            self._trust = system_trust()
        async with asyncio.timeout(CONNECT_DEADLINE):
            sock = await open_socket(self._host, self._port, self._lookups)
            try:
                lower, connection = await asyncio.get_running_loop().create_connection(
                    partial(Connection, self._small), sock=sock
                )
            except BaseException:
                sock.close()
                raise
            if self._trust is not None:
                await self._secure_connection(lower, connection, self._trust)
        return connection

    async def _secure_connection(self, lower: asyncio.Transport, connection: Connection, trust: ssl.SSLContext) -> None:
        try:
            above = await asyncio.get_running_loop().start_tls(lower, connection, trust, server_hostname=self._host)
            assert above is not None, "lost during the handshake"
            connection.secured_by(above)
        except BaseException:
            lower.abort()
            raise

    def _give_back(self, connection: Connection) -> None:
        if self._closed or not connection.is_usable:
            connection.abort()
            return
        self._idle.append(connection)
        while self._idle[0].used_at < connection.used_at - KEEP_ALIVE:
            self._idle.popleft().abort()
