"""An interceptor between a worker and the service."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from ots_tunnel.protocol import tunnel_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from tests.support.emulator.emulator_scene import EmulatorScene


@dataclass
class Interceptor:
    """Hides channels from a worker, corrupts answers, and records the calls."""

    scene: EmulatorScene
    hidden: int = 0
    """Number of further heartbeat answers that list no channel."""
    spoiled: dict[str, int] = field(default_factory=dict)
    """Number of further answers, by call, that are replaced by invalid bytes."""
    hidden_at: float = 0.0
    calls: list[tuple[float, str]] = field(default_factory=list)
    closed_at: list[float] = field(default_factory=list)

    def times(self, name: str) -> list[float]:
        return [at for at, call in self.calls if call == name]

    async def handle(self, request: HttpRequest) -> HttpResponse:
        name = request.path.rpartition("/")[2]
        # that of virtual time in a loop of virtual time
        clock = asyncio.get_running_loop().time
        self.calls.append((clock(), name))
        if name == "heartbeat":
            report = pb.HeartbeatRequest.FromString(request.body)
            closed = sum(channel.status == pb.CLOSE for channel in report.channels)
            self.closed_at += [clock()] * closed
        answer = await self.scene.emulator.handle(request)
        if self.spoiled.get(name, 0) > 0:
            self.spoiled[name] -= 1
            return HttpResponse(200, answer.headers, b"<html>maintenance</html>")
        if name == "heartbeat" and self.hidden > 0:
            self.hidden -= 1
            self.hidden_at = clock()
            return HttpResponse(200, answer.headers, b"")
        return answer
