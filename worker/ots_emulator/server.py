"""The two ports: data for clients, admin for tests and operators of the emulator."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from ots_emulator.app import Application
from ots_emulator.auth import body_too_large
from ots_emulator.refusal import Refusal
from ots_tunnel.errors import ConnectionLost
from ots_tunnel.protocol.http import HttpRequest

#: How long a stop waits for calls under way.
_STOP_SECONDS = 2.0


@dataclass(slots=True)
class Listener:
    """A listening port."""

    runner: web.ServerRunner | web.AppRunner
    host: str
    port: int

    @property
    def url(self) -> str:
        """Its URL without trailing slash."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    async def stop(self) -> None:
        """Finish calls under way and close the port."""
        await self.runner.cleanup()


async def listen(runner: web.ServerRunner | web.AppRunner, host: str, port: int) -> Listener:
    """Start listening; port 0 chooses a free one.

    Raises:
        OSError: the address cannot be used.
    """
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    try:
        await site.start()
    except OSError:
        await runner.cleanup()
        raise
    # A wildcard address is no address to connect to.
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    return Listener(runner, shown, runner.addresses[0][1])


async def serve_data(application: Application, host: str, port: int, body_limit: int) -> Listener:
    """Serve the data port."""
    server = web.Server(data_handler(application, body_limit), keepalive_timeout=75.0)
    return await listen(web.ServerRunner(server, shutdown_timeout=_STOP_SECONDS), host, port)


def data_handler(
    application: Application, body_limit: int
) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Return the function that turns HTTP into calls; one write carries headers and body (tablestore-api 1.9)."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if request.method != "POST":
            text = "Only POST method for requests is supported."
            answer = application.refuse(path, request.headers, Refusal("OTSMethodNotAllowed", text))
        elif (body := await _body(request, body_limit)) is None:
            answer = application.refuse(path, request.headers, body_too_large())
        else:
            try:
                answer = await application.handle(HttpRequest(path, request.headers, body))
            except ConnectionLost:
                if request.transport is not None:
                    request.transport.abort()
                raise asyncio.CancelledError from None
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)

    return handle


async def _body(request: web.BaseRequest, limit: int) -> bytes | None:
    """Read the body; None when it is longer than any request may be, whatever its headers say."""
    if (request.content_length or 0) > limit:
        return None
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            return None
    return b"".join(chunks)
