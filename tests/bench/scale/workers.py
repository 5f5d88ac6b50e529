"""All workers of a fleet: clients of their tunnels, and the pages that the operator asks them for."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import ClientId, Credentials, TunnelId
from ots_tunnel_operator.names import WORKER_PORT
from tests.bench.scale.service import KEY_ID, KEY_SECRET

#: Seconds after which the service forgets a client that is silent: longer than any measurement.
CLIENT_SECONDS = 86_400
CREDENTIALS = static_credentials(Credentials(KEY_ID, KEY_SECRET))


@dataclass(frozen=True)
class Worker:
    """One worker: its client, and the channels that it has got."""

    tunnel_id: TunnelId
    client_id: ClientId
    channels: tuple[str, ...]


@dataclass
class Workers:
    """Every worker, by the address of its pod.

    Args:
        endpoint: of the service.
    """

    endpoint: str
    _at: dict[str, Worker] = field(default_factory=dict)
    _clients: dict[str, TunnelClient] = field(default_factory=dict)
    _next: int = 0

    async def start(self, instance: str, tunnel_id: TunnelId, tag: str) -> str:
        """Connect a client, take its channels, and return the address of the worker's page."""
        client = self._clients.get(instance)
        if client is None:
            client = self._clients[instance] = TunnelClient(self.endpoint, instance, CREDENTIALS)
        client_id = await client.connect(tunnel_id, CLIENT_SECONDS, tag)
        given = await client.heartbeat(tunnel_id, client_id, ())
        given = await client.heartbeat(tunnel_id, client_id, given)
        self._next += 1
        address = f"127.{64 + self._next // 62_500}.{self._next // 250 % 250}.{1 + self._next % 250}"
        self._at[address] = Worker(tunnel_id, client_id, tuple(str(channel.channel_id) for channel in given))
        return address

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve the pages on every address of the loopback device, and on no other device."""
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
        listening.bind(("0.0.0.0", WORKER_PORT))
        runner = web.ServerRunner(web.Server(self._answer, keepalive_timeout=3600.0))
        await runner.setup()
        try:
            await web.SockSite(runner, listening, backlog=4096).start()
            yield
        finally:
            await runner.cleanup()
            for client in self._clients.values():
                await client.close()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        worker = self._at.get(request.transport.get_extra_info("sockname")[0])
        answer = web.Response(status=404) if worker is None else web.json_response(page(worker))
        # as a worker's own server
        answer.force_close()
        return answer


def page(worker: Worker) -> dict[str, Any]:
    """What a worker tells whose table is idle."""
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    channel = {"state": "OPEN", "rowsTotal": 0, "caughtUp": True, "consumedUpTo": now, "lagSeconds": 0}
    return {
        "time": now,
        "clientId": worker.client_id,
        "tunnelId": worker.tunnel_id,
        "rowsPerSecond": 0.0,
        "busyPercent": 0,
        "completed": False,
        "error": None,
        "possibleGaps": [],
        "refused": None,
        "sink": {"lookedTime": now, "confirmedTime": None, "failing": None},
        "channels": [channel | {"id": each} for each in worker.channels],
    }
