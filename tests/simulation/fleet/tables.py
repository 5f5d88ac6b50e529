"""Table administration of simulated processes: the vendor's SDK, with its connections replaced by the service.

The SDK blocks a thread: the answer is there at once, and before it tries again it sleeps on virtual time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import tablestore.client
import tablestore.protocol

from ots_tunnel.errors import ConnectionLost
from ots_tunnel.protocol.http.message import HttpRequest
from tests.simulation.service import SimulatedService


class _Service:
    """The service that answers the SDK in this interpreter."""

    of: SimulatedService | None = None


class _NoPool:
    """What the administration configures and empties."""

    def __init__(self) -> None:
        self.connection_pool_kw: dict[str, Any] = {}

    def clear(self) -> None:
        """Nothing is open."""


class ServicePool:
    """Stands for the SDK's `ConnectionPool`."""

    def __init__(self, host: str, path: str, **options: Any) -> None:
        self.host = urlsplit(host).hostname or host
        self.pool = _NoPool()

    def send_receive(self, url: str, headers: dict[str, Any], body: bytes) -> tuple[int, str, dict[str, str], bytes]:
        """Send a request and return status, reason, headers and body."""
        service = _Service.of
        assert service is not None, "no region is running"
        request = HttpRequest(url, {name: str(value) for name, value in headers.items()}, body)
        try:
            answer = service.handle(request)
        except ConnectionLost as error:
            raise OSError(str(error)) from error
        return answer.status, "", dict(answer.headers), answer.body


def install(service: SimulatedService) -> None:
    """Let the SDK of this interpreter call a region's service."""
    _Service.of = service
    tablestore.client.ConnectionPool = ServicePool
    tablestore.protocol.utils.get_now_utc_datetime = lambda: datetime.fromtimestamp(service.clock.now(), UTC)
