"""An order to stop that comes after the client is lost: while its channels end, and while its write is in doubt."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import pytest

from ots_emulator import Emulator, Settings
from ots_emulator.server.faults import FaultRule
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.fence import boottime
from ots_tunnel.model import TunnelType
from ots_tunnel.sinks import Batch, Guard, Immediate
from ots_tunnel.transport.inprocess import InProcessTransport
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.emulator.emulator_scene import CREDENTIALS, EmulatorScene
from tests.support.interceptor import Interceptor
from tests.support.waiting import until


@dataclass
class Slow(Immediate):
    """A sink whose writes hang, or whose channels end when `may_end` is set."""

    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    writing: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self) -> None: ...

    async def write(self, batch: Batch, guard: Guard) -> None:
        self.writing.set()
        await asyncio.Event().wait()

    async def end(self, channel_id: object, *, abandoned: bool) -> None:
        self.ending.set()
        await self.may_end.wait()

    async def close(self) -> None: ...


@pytest.fixture
async def scene() -> EmulatorScene:
    scene = EmulatorScene(Emulator(settings=Settings(init_delay=0.0)))
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    return scene


async def test_a_drain_while_the_channels_of_a_lost_client_end(scene: EmulatorScene) -> None:
    sink = Slow()
    worker = scene.worker(sink)
    running = asyncio.create_task(worker.run())
    await until(lambda: any(view.progress.last_look for view in worker.status.channels.values()), what="a first read")
    scene.emulator.expire_clients("demo", scene.tunnel_id)
    await asyncio.wait_for(sink.ending.wait(), 30)

    worker.drain()
    sink.may_end.set()

    await asyncio.wait_for(running, 30)


@pytest.mark.parametrize("order", [TunnelWorker.drain, TunnelWorker.close], ids=["drain", "close"])
async def test_an_end_waits_for_the_doubt_of_a_lost_client_no_longer_than_it_may(
    scene: EmulatorScene, order: object
) -> None:
    sink, skipped = Slow(), 0.0
    sink.may_end.set()
    settings = scene.settings(interval=1, timeout=40, drain=1 if order is TunnelWorker.drain else 30)
    interceptor = Interceptor(scene)
    client = TunnelClient("http://emulator", "demo", CREDENTIALS, InProcessTransport(interceptor.handle))
    worker = TunnelWorker(client, sink, settings, clock=lambda: boottime() + skipped)
    running = asyncio.create_task(worker.run())
    await scene.put(["a"])
    await asyncio.wait_for(sink.writing.wait(), 10)
    scene.emulator.faults.add(FaultRule("Heartbeat", code="OTSServerBusy"))
    skipped = 100.0  # more than the timeout
    await asyncio.wait_for(sink.ending.wait(), 10)
    began = time.monotonic()

    worker.drain()
    if order is TunnelWorker.close:
        worker.close()
    await asyncio.wait_for(running, 20)

    assert time.monotonic() - began < 10  # D is 13 s
    assert interceptor.times("shutdown") == []  # it would free the channels beside the write
