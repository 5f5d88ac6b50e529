"""A machine that is suspended: its loop's timers stand still, the time of the service does not."""

from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.model import TunnelType
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.emulator.virtual_scene import VirtualScene, now
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime


class Machine:
    """A clock that counts suspended time beside the loop's, which does not."""

    suspended = 0.0

    def clock(self) -> float:
        return asyncio.get_running_loop().time() + self.suspended

    def suspend(self, seconds: float, scene: VirtualScene) -> None:
        """Let time pass for everybody but the loop."""
        self.suspended += seconds
        scene.clock.advance(seconds)


def worker_on(machine: Machine, scene: VirtualScene, sink: RecordingSink, **settings: object) -> TunnelWorker:
    return TunnelWorker(scene.calling_client(), sink, scene.settings(**settings), clock=machine.clock)


async def made() -> VirtualScene:
    scene = VirtualScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    return scene


async def test_a_heartbeat_is_sent_soon_after_waking_up() -> None:
    scene, machine, sink = await made(), Machine(), RecordingSink()
    async with scene.running(worker_on(machine, scene, sink, interval=60, timeout=200)):
        await until(scene.owners)
        await asyncio.sleep(65)
        before, woken = len(scene.times("heartbeat")), now()
        machine.suspend(100, scene)
        await until(lambda: len(scene.times("heartbeat")) > before)

        assert scene.times("heartbeat")[before] - woken <= 6


async def test_a_client_that_the_service_forgot_meanwhile_writes_nothing_more() -> None:
    """The write that waited is refused, a new client reads its records again."""
    scene, machine = await made(), Machine()
    sink = RecordingSink(gate=asyncio.Event())
    async with scene.running(worker_on(machine, scene, sink)):
        await until(scene.owners)
        first = scene.clients
        machine.suspend(50, scene)
        await scene.put(["k"])
        assert sink.gate is not None
        sink.gate.set()
        await until(lambda: sink.written == [("k", 1)])

        assert scene.clients != first


async def test_suspended_time_counts_for_the_drain() -> None:
    scene, machine = await made(), Machine()
    sink = RecordingSink(gate=asyncio.Event())
    worker = worker_on(machine, scene, sink, drain=45)
    running = asyncio.create_task(worker.run())
    await until(scene.owners)
    await scene.put(["k"])
    await until(lambda: sink.writing)
    worker.drain()
    began = now()
    machine.suspend(300, scene)

    await asyncio.wait_for(running, 60)

    assert now() - began <= 20, "the drain's time is over"
