"""Transports to the service: one interface and three implementations (aio, sync, inprocess)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Protocol

from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse

#: Waits until there is room for an answer; `AT_ONCE` says that there is.
BeforeAnswer = Callable[[], Awaitable[None]]


class _AtOnce:
    def __await__(self) -> Generator[None, None, None]:
        yield from ()


#: What is awaited where nothing has to be waited for: whoever knows it need not await it.
AT_ONCE: Awaitable[None] = _AtOnce()


class Transport(Protocol):
    """Sends one request to one endpoint and returns its answer.

    Raises:
        TransportError: no complete answer; `ConnectError` if the request was certainly not executed.
    """

    async def send(
        self,
        request: HttpRequest,
        *,
        timeout: float,
        before_send: Callable[[], None] | None = None,
        before_answer: BeforeAnswer | None = None,
    ) -> HttpResponse:
        """Send within `timeout` seconds in total.

        `before_send` runs when the connection is open, right before the bytes leave. If it raises, nothing is sent
        and its error is raised here. Fencing of writes depends on it (docs/architecture.md rule 4).

        `before_answer` is awaited when the answer begins, before it is in memory. Its time does not count.
        """
        ...

    async def close(self) -> None:
        """Close the connections; calls in progress fail."""
        ...
