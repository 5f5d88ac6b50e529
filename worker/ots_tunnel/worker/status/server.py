"""The worker's HTTP server: `/metrics`, `/healthz`, `/readyz`, `/channels`.

Four pages for a probe and a scraper. Every connection carries one request. A web framework would take more memory than
the rest of the worker.
"""

from __future__ import annotations

import asyncio
import http
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from ots_tunnel.errors import ConfigError
from ots_tunnel.exposition import CONTENT_TYPE, text_of
from ots_tunnel.listening import listening_socket
from ots_tunnel.worker.status.gauges import StatusCollector
from ots_tunnel.worker.status.worker_status import WorkerStatus

#: Seconds that a client may take to send its request and to receive the answer; own choice, probes give up earlier.
PATIENCE = 10.0
#: Most bytes of a request; own choice, scrapers send about 1 KiB.
REQUEST_LIMIT = 16 << 10
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Page:
    """An answer."""

    body: bytes
    content_type: str = TEXT
    status: int = 200

    def encode(self, *, with_body: bool = True) -> bytes:
        """The bytes of the answer, after which the connection is closed."""
        reason = http.HTTPStatus(self.status).phrase
        head = (
            f"HTTP/1.1 {self.status} {reason}\r\nContent-Type: {self.content_type}\r\n"
            f"Content-Length: {len(self.body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + (self.body if with_body else b"")


def page_of(head: bytes, pages: Mapping[str, Callable[[], Page]]) -> bytes:
    """The answer to a request without a body; `head` is all of it."""
    method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    target, _, version = rest.partition(" ")
    if not version.startswith("HTTP/1."):
        return Page(b"no request\n", status=400).encode()
    page = pages.get(target.partition("?")[0])
    if page is None:
        return Page(f"there are {', '.join(pages)}\n".encode(), status=404).encode(with_body=method != "HEAD")
    if method not in ("GET", "HEAD"):
        return Page(b"allowed are GET and HEAD\n", status=405).encode()
    return page().encode(with_body=method == "GET")


class StatusServer:
    """Serves a worker's status while the block is open.

    Args:
        port: 0 takes a free one; see `url`.
    """

    def __init__(self, status: WorkerStatus, host: str, port: int) -> None:
        self._status = status
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self._pages = {
            "/metrics": self._metrics,
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/channels": self._channels,
        }
        self.url = ""

    def __repr__(self) -> str:
        return f"StatusServer({self.url or 'closed'})"

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            ConfigError: the address cannot be used.
        """
        self._status.metrics.registry.register(StatusCollector(self._status))
        try:
            listening = listening_socket(self._host, self._port)
        except OSError as error:
            raise ConfigError(f"http.port {self._port} on {self._host}: {error.strerror}") from error
        self._server = await asyncio.start_server(self._answer, sock=listening, limit=REQUEST_LIMIT)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening; answers under way are cut."""
        if self._server is None:
            return
        self._server.close()
        answering = list(self._answering)
        for task in answering:
            task.cancel()
        await asyncio.gather(*answering, return_exceptions=True)
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            async with asyncio.timeout(PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(page_of(head, self._pages))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client is gone, or sent no complete request
        except asyncio.CancelledError:
            pass  # the server is closing; asyncio's server would log the cancellation as an error
        finally:
            self._answering.discard(task)
            writer.transport.abort()

    def _metrics(self) -> Page:
        return Page(text_of(self._status.metrics.registry), CONTENT_TYPE)

    def _healthz(self) -> Page:
        # A restart could only fix an event loop that does not answer.
        return Page(b"ok\n")

    def _readyz(self) -> Page:
        return Page(b"ok\n") if self._status.is_ready else Page(b"no heartbeat was answered yet\n", status=503)

    def _channels(self) -> Page:
        return Page(json.dumps(self._status.document()).encode(), "application/json; charset=utf-8")
