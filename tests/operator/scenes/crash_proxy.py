"""Proxy between one operator process and its two servers; it numbers writes and kills the operator at one of them.

The operator gets two plain addresses on loopback: one for the Kubernetes API (the proxy adds the token), one for the
emulator. Reads pass through, and watches are not buffered. The server always executes the n-th write since `arm`; then
SIGKILL ends the operator, either before or after it reads the answer.
"""

from __future__ import annotations

import asyncio
import base64
import enum
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import yaml
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, TCPConnector, web
from yarl import URL

from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS, TUNNEL_OPERATIONS

_DEADLINE = 10.0
#: Seconds between an answer and the kill after it, in which the operator reads the answer.
_READING_SECONDS = 0.1
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "host", "content-length"})
_CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
#: Paths whose writes are not counted: the Lease and events hold no state of an object, and a review stores nothing.
_BESIDE = ("/leases", "/events", "/selfsubject")
_SERVICE_WRITES = {
    operation.path
    for operation in (*TABLE_OPERATIONS.values(), *TUNNEL_OPERATIONS.values())
    if not operation.idempotent
}


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Middleware = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]
Chunks = AsyncIterator[bytes]
#: Keys of a request that a middleware sets: its answer never arrives; what is passed on of the chunks of a watch.
LOST = web.RequestKey("lost", bool)
STREAM = web.RequestKey("stream", Callable[[Chunks], Chunks])


class Moment(enum.StrEnum):
    """Whether the kill comes before or after the answer to the write."""

    BEFORE = "before"
    AFTER = "after"


@dataclass
class Upstream:
    """One server behind the proxy."""

    url: str
    is_write: Callable[[str, str], bool]
    headers: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None


def kubernetes(kubeconfig: Path) -> Upstream:
    """The API server of a kubeconfig with a token."""
    document = yaml.safe_load(kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    inline = cluster.get("certificate-authority-data")
    tls = ssl.create_default_context(
        cafile=cluster.get("certificate-authority"), cadata=base64.b64decode(inline).decode() if inline else None
    )
    return Upstream(cluster["server"], _writes_kubernetes, {"Authorization": f"Bearer {user['token']}"}, tls)


def emulator(endpoint: str) -> Upstream:
    """The emulator's data port."""
    return Upstream(endpoint, lambda method, path: path in _SERVICE_WRITES)


def _writes_kubernetes(method: str, path: str) -> bool:
    return method in _CHANGING and not any(part in path for part in _BESIDE)


class _Answer(ClientResponse):
    """An answer that is not read to its end, or not given yet, ends with its connection.

    Otherwise TLS says farewell to a server that may take longer to say its own than the event loop lives.
    """

    def close(self) -> None:
        self._cut()
        super().close()

    def release(self) -> None:
        self._cut()  # an answer that was read to its end has no connection any more
        super().release()

    def _cut(self) -> None:
        if self.connection is not None and self.connection.transport is not None:
            self.connection.transport.abort()


class CrashProxy:
    """Context manager that serves both upstreams in a separate thread.

    `writes` is every write since `arm`, as "METHOD path", and `bodies` is what they have sent; `killed` is set once the
    armed kill has happened. `requests` is every request to the API server, watches included, likewise. `refused` maps a
    part of a path on the API server to the HTTP status with which requests to it are refused.

    A `middleware` stands before the API server (`api_faults`); it may set the keys LOST and STREAM of a request.
    """

    def __init__(self, kube: Upstream, service: Upstream, middleware: Middleware | None = None) -> None:
        self._upstreams = (kube, service)
        self._middlewares = () if middleware is None else (middleware,)
        self._lock = threading.Lock()
        self._armed: tuple[int, Moment, Callable[[], None]] | None = None
        self._dying = False
        self.writes: list[str] = []
        self.bodies: list[bytes] = []
        self.requests: list[str] = []
        self.refused: dict[str, int] = {}
        self.killed = threading.Event()
        self.kube_url = self.service_url = ""
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="proxy", daemon=True)

    def arm(self, number: int = 0, moment: Moment = Moment.BEFORE, kill: Callable[[], None] = lambda: None) -> None:
        """Restart the count at 1 and call `kill` at write `number`; 0 only counts."""
        with self._lock:
            self.writes, self.bodies = [], []
            self.killed.clear()
            self._dying = False
            self._armed = (number, moment, kill) if number else None

    def __enter__(self) -> CrashProxy:
        self._thread.start()
        if not self._ready.wait(_DEADLINE):
            raise TimeoutError(f"the proxy did not start within {_DEADLINE} s")
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_DEADLINE)
        if self._thread.is_alive():
            raise TimeoutError(f"the proxy did not stop within {_DEADLINE} s")

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        connector = TCPConnector(limit=0)
        timeout = ClientTimeout(total=None, sock_connect=5)
        async with ClientSession(
            auto_decompress=False, connector=connector, timeout=timeout, response_class=_Answer
        ) as self._session:
            runners: list[web.AppRunner] = []
            try:
                self.kube_url, self.service_url = [await self._listen(one, runners) for one in self._upstreams]
            except OSError as error:
                self._failure = error
            self._ready.set()
            if self._failure is None:
                await self._stop.wait()
            for runner in runners:
                await runner.cleanup()
            await connector.close(abort_ssl=True)

    async def _listen(self, upstream: Upstream, runners: list[web.AppRunner]) -> str:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._handle(upstream, request)

        middlewares = self._middlewares if upstream is self._upstreams[0] else ()
        application = web.Application(client_max_size=64 << 20, middlewares=middlewares)
        application.router.add_route("*", "/{path:.*}", handle)
        # a watch must end together with the process that opened it
        runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def _handle(self, upstream: Upstream, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _HOP_BY_HOP}
        armed = None
        if upstream is self._upstreams[0]:
            self.requests.append(f"{request.method} {request.path}")
            status = next((status for part, status in self.refused.items() if part in request.path), None)
            if status is not None:
                return web.json_response({"reason": "Refused", "message": f"no {request.path}"}, status=status)
        if upstream.is_write(request.method, request.path):
            if self._dying:
                return self._drop(request)
            armed = self._count(request, body)
        try:
            async with self._session.request(
                request.method,
                URL(upstream.url + request.raw_path, encoded=True),
                data=body or None,
                headers=headers | upstream.headers,
                ssl=upstream.tls or True,
                allow_redirects=False,
            ) as answer:
                kept = {key: value for key, value in answer.headers.items() if key.lower() not in _HOP_BY_HOP}
                response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=kept)
                if "watch" in request.query:
                    await response.prepare(request)
                    async for chunk in request.get(STREAM, _unchanged)(answer.content.iter_any()):
                        await response.write(chunk)
                    return response
                return await self._answer(request, response, await answer.read(), armed)
        except ClientError as error:
            return web.Response(status=502, text=f"the proxy cannot reach the server: {error}")

    def _count(self, request: web.Request, body: bytes) -> tuple[Moment, Callable[[], None]] | None:
        with self._lock:
            self.writes.append(f"{request.method} {request.path}")
            self.bodies.append(body)
            if self._armed is None or len(self.writes) != self._armed[0]:
                return None
            _, moment, kill = self._armed
            self._armed, self._dying = None, True
            return moment, kill

    async def _answer(
        self,
        request: web.Request,
        response: web.StreamResponse,
        body: bytes,
        armed: tuple[Moment, Callable[[], None]] | None,
    ) -> web.StreamResponse:
        if armed is not None and armed[0] is Moment.BEFORE:
            self._kill(armed[1])
            return self._drop(request)
        if request.get(LOST):
            return self._drop(request)
        response.content_length = len(body)
        await response.prepare(request)
        await response.write(body)
        await response.write_eof()
        if armed is not None:
            await asyncio.sleep(_READING_SECONDS)
            self._kill(armed[1])
        return response

    @staticmethod
    def _drop(request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    def _kill(self, kill: Callable[[], None]) -> None:
        kill()
        with self._lock:
            self._dying = False
        self.killed.set()


async def _unchanged(chunks: Chunks) -> Chunks:
    async for chunk in chunks:
        yield chunk
