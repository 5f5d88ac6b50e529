"""A transport that calls a handler of this process: the emulator without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ots_tunnel.errors import ConnectionLost, ReadTimeout
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.transport import BeforeAnswer


class InProcessTransport:
    """Passes requests to `handle`, with the rules of every transport for timeouts, `before_send` and closing."""

    def __init__(self, handle: Callable[[HttpRequest], Awaitable[HttpResponse]]) -> None:
        self._handle = handle
        self._closed = False

    def __repr__(self) -> str:
        return "InProcessTransport()"

    async def send(
        self,
        request: HttpRequest,
        *,
        timeout: float,
        before_send: Callable[[], None] | None = None,
        before_answer: BeforeAnswer | None = None,
    ) -> HttpResponse:
        """Let the handler answer within `timeout` seconds.

        Raises:
            ReadTimeout: it did not answer in time.
            ConnectionLost: the transport was closed.
        """
        if self._closed:
            raise ConnectionLost("transport is closed")
        if before_send is not None:
            before_send()
        try:
            async with asyncio.timeout(timeout):
                answer = await self._handle(request)
        except TimeoutError as error:
            raise ReadTimeout("no complete answer in time") from error
        if before_answer is not None:
            await before_answer()
        return answer

    async def close(self) -> None:
        """Refuse further requests."""
        self._closed = True
