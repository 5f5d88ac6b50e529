"""The worker's HTTP server: `/metrics`, `/healthz`, `/readyz`, `/channels`."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from ots_tunnel.errors import ConfigError
from ots_tunnel.status import StatusCollector, WorkerStatus


class StatusServer:
    """Serves a worker's status while the block is open.

    Args:
        port: 0 takes a free one; `url` says which.
    """

    def __init__(self, status: WorkerStatus, host: str, port: int) -> None:
        self._status = status
        self._host = host
        self._port = port
        self._runner: web.AppRunner | None = None
        self.url = ""

    def __repr__(self) -> str:
        return f"StatusServer({self.url or 'closed'})"

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            ConfigError: the address cannot be had.
        """
        registry = self._status.metrics.registry
        registry.register(StatusCollector(self._status))
        self._runner = web.AppRunner(self._application(), access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise ConfigError(f"http.port {self._port} on {self._host}: {error.strerror}") from error
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/channels", self._channels)
        return application

    async def _metrics(self, _request: web.Request) -> web.Response:
        body = generate_latest(self._status.metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _healthz(self, _request: web.Request) -> web.Response:
        # The event loop answers, and that is all that a restart could mend.
        return web.Response(text="ok\n")

    async def _readyz(self, _request: web.Request) -> web.Response:
        if self._status.is_ready:
            return web.Response(text="ok\n")
        return web.Response(status=503, text="no heartbeat was answered yet\n")

    async def _channels(self, _request: web.Request) -> web.Response:
        return web.json_response(self._status.document())
