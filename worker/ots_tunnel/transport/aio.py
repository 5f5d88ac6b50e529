"""HTTP for asyncio: one pool of kept-alive connections to one endpoint, by aiohttp.

Rules: nothing is sent once `before_send` has refused, nothing foreign is raised, nothing is repeated here.
Source: tunnel-protocol 1.1; design section 5, rule 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload
from yarl import URL

from ots_tunnel.errors import ConnectError, ConnectionLost, ReadTimeout
from ots_tunnel.protocol.http import HttpRequest, HttpResponse

#: Idle connections are dropped before common servers drop them, so that no call meets a closing one.
KEEP_ALIVE = 15.0
#: Pages are up to some MiB: reading them in larger pieces saves wake-ups.
READ_BUFFER_BYTES = 1 << 20


class GuardedBody(Payload):
    """A request's body that asks `before_send` in the moment the first byte would leave.

    aiohttp holds the headers back until the body's first bytes, and asks for them only when a connection is
    there, so a refusal here means that nothing at all was sent.
    """

    _value: bytes
    _autoclose = True

    def __init__(self, body: bytes, before_send: Callable[[], None] | None) -> None:
        super().__init__(body)
        self._size = len(body)
        self._before_send = before_send
        #: What `before_send` raised; aiohttp wraps it beyond recognition.
        self.refusal: BaseException | None = None
        #: Whether bytes may have left; if not, the request was certainly not executed.
        self.started = False

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The body as text; part of aiohttp's interface."""
        return self._value.decode(encoding, errors)

    async def as_bytes(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """The body; part of aiohttp's interface."""
        return self._value

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Ask, then hand the bytes to the connection."""
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Ask, then hand the bytes to the connection."""
        if self._before_send is not None:
            try:
                self._before_send()
            except BaseException as refusal:
                self.refusal = refusal
                raise
        self.started = True
        await writer.write(self._value)


class AioTransport:
    """Calls one endpoint over a pool of connections.

    Args:
        endpoint: `http://host[:port]` or `https://...`, no path.
        max_connections: calls under way at the same time; further ones wait. 0 means no limit.
    """

    def __init__(self, endpoint: str, *, max_connections: int = 100) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._max_connections = max_connections
        self._session: aiohttp.ClientSession | None = None
        self._urls: dict[str, URL] = {}

    def __repr__(self) -> str:
        return f"AioTransport({self.endpoint})"

    async def send(
        self, request: HttpRequest, *, timeout: float, before_send: Callable[[], None] | None = None
    ) -> HttpResponse:
        """Send one request; `timeout` covers waiting for a connection, sending and the whole answer.

        Raises:
            ConnectError: no connection; the request was not executed.
            ReadTimeout: no complete answer in time.
            ConnectionLost: the connection broke.
        """
        body = GuardedBody(request.body, before_send)
        try:
            async with self._pool().post(
                self._url(request.path),
                data=body,
                headers=request.headers,
                timeout=aiohttp.ClientTimeout(total=timeout, ceil_threshold=math.inf),  # to the point: it is D
                allow_redirects=False,
            ) as answer:
                content = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if body.refusal is not None:
                raise body.refusal from None
            raise translate(error, self.endpoint, started=body.started) from error
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return HttpResponse(answer.status, headers, content)

    async def close(self) -> None:
        """Close the connections; calls under way fail."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _url(self, path: str) -> URL:
        # There are as many as operations; parsing one takes longer than sending a small request.
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = URL(self.endpoint + path)
        return url

    def _pool(self) -> aiohttp.ClientSession:
        # Made on first use: a session belongs to the running loop.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._max_connections, keepalive_timeout=KEEP_ALIVE),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=("Accept-Encoding",),
                read_bufsize=READ_BUFFER_BYTES,
            )
        return self._session


def translate(error: BaseException, endpoint: str, *, started: bool) -> ConnectError | ReadTimeout | ConnectionLost:
    """The package's error for one of aiohttp's or asyncio's; `started` says whether bytes may have left."""
    reason = str(error) or type(error).__name__
    if not started:
        return ConnectError(f"no connection to {endpoint}: {reason}")
    if isinstance(error, TimeoutError):
        return ReadTimeout(f"no complete answer from {endpoint} in time")
    return ConnectionLost(f"connection to {endpoint} broke: {reason}")
