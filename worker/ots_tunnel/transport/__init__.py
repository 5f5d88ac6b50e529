"""How requests reach the service: one small interface, three implementations (aio, sync, inprocess)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse


class Transport(Protocol):
    """Sends one request to one endpoint and returns its answer.

    Raises:
        TransportError: no complete answer; `ConnectError` when the request certainly was not executed.
    """

    async def send(
        self, request: HttpRequest, *, timeout: float, before_send: Callable[[], None] | None = None
    ) -> HttpResponse:
        """Send within `timeout` seconds in all.

        `before_send` runs when a connection is there and the bytes are about to go out; whatever it raises
        is passed on and nothing is sent. Write fencing depends on it (design: fencing by time).
        """
        ...

    async def close(self) -> None:
        """Close the connections; calls under way fail."""
        ...
