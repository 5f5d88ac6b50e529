"""Workers on an emulator in the loop's time, with a record of every call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from ots_emulator import Emulator, Settings
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.model import TunnelType
from ots_tunnel.protocol import tunnel_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.sinks import Sink
from ots_tunnel.transport.inprocess import InProcessTransport
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.channel_scene import SETTINGS
from tests.support.emulator.emulator_scene import CREDENTIALS, TABLE, EmulatorScene, Handle

KEYS = [f"k{number:03}" for number in range(100)]


class LoopClock:
    """The service's time runs with the loop's."""

    def __init__(self, began: float) -> None:
        self._began = began

    def advance(self, seconds: float) -> None:
        """Let time pass for the service alone."""
        self._began += seconds

    def now(self) -> float:
        return self._began + asyncio.get_running_loop().time()


class VirtualScene(EmulatorScene):
    """A scene in the loop's time, with a record of every call. Make it inside the test, where that time runs."""

    patience = 100_000

    def __init__(self, **settings: object) -> None:
        chosen = Settings(**{"page_rows": 50, "init_delay": 0.01, "date_skew": None, **settings})
        self.clock = LoopClock(1_700_000_000.0)
        super().__init__(Emulator(settings=chosen, clock=self.clock))
        self.calls: list[tuple[float, str]] = []
        self.reports: list[pb.HeartbeatRequest] = []
        self.connects: list[pb.ConnectRequest] = []
        #: Replaces answers: takes the call's name and the answer, returns the delivered one.
        self.deliver: Callable[[str, HttpResponse], HttpResponse] = lambda name, answer: answer

    def times(self, name: str) -> list[float]:
        """When a call was sent."""
        return [at for at, call in self.calls if call == name]

    async def handle(self, request: HttpRequest) -> HttpResponse:
        """Forward a worker's call to the emulator."""
        name = request.path.rpartition("/")[2]
        self.calls.append((asyncio.get_running_loop().time(), name))
        if name == "heartbeat":
            self.reports.append(pb.HeartbeatRequest.FromString(request.body))
        elif name == "connect":
            self.connects.append(pb.ConnectRequest.FromString(request.body))
        return self.deliver(name, await self.emulator.handle(request))

    def calling_client(self, handle: Handle | None = None) -> TunnelClient:
        """A client whose calls are recorded, unless `handle` answers them."""
        return TunnelClient("http://emulator", "demo", CREDENTIALS, InProcessTransport(handle or self.handle))

    @property
    def clients(self) -> list[str]:
        """Ids of the clients that the service knows."""
        return list(self.emulator.tunnel("demo", self.tunnel_id).clients)

    def settings(self, **changes: object) -> WorkerSettings:
        """A heartbeat every 10 s and a timeout of 40 s, unless `changes` say otherwise."""
        times = {"interval": 10, "timeout": 40, "early_spacing": 1, "reconnect": (1, 3), "drain": 45, **changes}
        return replace(SETTINGS, tunnel_id=self.tunnel_id, table=TABLE, tunnel_name="t", **times)

    def worker(
        self,
        sink: Sink,
        *,
        handle: Handle | None = None,
        renewed_mark: Callable[[], float | None] | None = None,
        **settings: object,
    ) -> TunnelWorker:
        """A worker in the loop's time on the scene's tunnel.

        Args:
            renewed_mark: the read mark of its document as it is when a channel is opened.
        """
        client, clock = self.calling_client(handle), asyncio.get_running_loop().time
        chosen = self.settings(**settings)
        mark = None if renewed_mark is None else lambda _: renewed_mark()
        return TunnelWorker(client, sink, chosen, clock=clock, entropy=lambda: 0.5, read_mark=mark)


class QuickScene(VirtualScene):
    """With a heartbeat every 1.5 s, and a timeout of 10 s."""

    def settings(self, **changes: object) -> WorkerSettings:
        times = {"interval": 1.5, "timeout": 10, "checkpoint_interval": 1, "early_spacing": 0.25, "drain": 50}
        return super().settings(**{**times, "reconnect": (0.125, 0.5), **changes})


async def streaming() -> VirtualScene:
    """A table of a hundred rows, and a tunnel of its stream with four channels."""
    scene = VirtualScene()
    await scene.create_table(partitions=4)
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.Stream)
    return scene


def now() -> float:
    """The loop's time."""
    return asyncio.get_running_loop().time()
