"""A client's life: every exit shuts it down, and a client that the service forgot is replaced at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ots_emulator.server.faults import FaultRule
from ots_tunnel.errors import PermissionDenied, SinkRejected, TunnelExpired
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.emulator.virtual_scene import KEYS, VirtualScene, now, streaming
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

INTERVAL, TIMEOUT = 10, 40


async def _drained(scene: VirtualScene, running: asyncio.Task[None], worker: TunnelWorker) -> None:
    worker.drain()
    await running


async def _cancelled(scene: VirtualScene, running: asyncio.Task[None], worker: TunnelWorker) -> None:
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def _closed(scene: VirtualScene, running: asyncio.Task[None], worker: TunnelWorker) -> None:
    worker.close()
    await running


async def _broken(scene: VirtualScene, running: asyncio.Task[None], worker: TunnelWorker) -> None:
    def bug() -> None:
        raise ZeroDivisionError

    worker.status.sample = bug
    with pytest.raises(ZeroDivisionError):
        await running


async def _denied(scene: VirtualScene, running: asyncio.Task[None], worker: TunnelWorker) -> None:
    scene.emulator.faults.add(FaultRule("Heartbeat", code="OTSPermissionDenied", count=1))
    with pytest.raises(PermissionDenied):
        await running


async def _expired(scene: VirtualScene, running: asyncio.Task[None], worker: TunnelWorker) -> None:
    scene.emulator.expire_tunnel("demo", scene.tunnel_id)
    with pytest.raises(TunnelExpired):
        await running


async def _refused(scene: VirtualScene, running: asyncio.Task[None], worker: TunnelWorker) -> None:
    await scene.put(["bad"], [7])
    with pytest.raises(SinkRejected):
        await running


async def _silent(scene: VirtualScene, running: asyncio.Task[None], worker: TunnelWorker) -> None:
    # Beyond the local timeout while the service still knows the client: its answers were lost.
    before = list(scene.clients)
    scene.emulator.faults.add(FaultRule("Heartbeat", drop_response=True))
    await until(lambda: len(scene.times("shutdown")) == 1)
    assert scene.clients != before
    scene.emulator.clear_faults()
    worker.drain()
    await running


class Choosy(RecordingSink):
    """Refuses the number 7."""

    async def write(self, batch: object, guard: object) -> None:
        await super().write(batch, guard)
        if any(number == 7 for _, number in self.written):
            raise SinkRejected("OTSInvalidPK", "no such key")


@pytest.mark.parametrize("end", [_drained, _cancelled, _closed, _broken, _denied, _expired, _refused, _silent])
async def test_g14_every_exit_gives_the_client_up(end: Callable[..., object]) -> None:
    """Go ends without Shutdown after an error, so that channels stay locked for 300 s; ours frees them at any exit."""
    scene = await streaming()
    worker = scene.worker(Choosy())
    running = asyncio.create_task(worker.run())
    await until(lambda: worker.status.is_ready)
    await asyncio.sleep(15)
    began = now()

    await end(scene, running, worker)

    assert scene.clients == []
    assert scene.owners() == []
    assert len(scene.times("shutdown")) == len(scene.times("connect"))
    assert now() - began < 2 * TIMEOUT


async def test_g16_a_client_that_connects_while_the_worker_stops_is_given_up() -> None:
    """In Go a shutdown before the answer to Connect leaves a client behind; ours waits for it and shuts it down."""
    scene = await streaming()
    scene.emulator.faults.add(FaultRule("Connect", latency=20, count=1))
    worker = scene.worker(RecordingSink())
    running = asyncio.create_task(worker.run())
    await until(lambda: len(scene.emulator.faults) == 0)

    worker.drain()
    await running

    assert (len(scene.times("connect")), len(scene.times("shutdown"))) == (1, 1)
    assert (scene.clients, scene.owners()) == ([], [])


async def test_g16_after_a_failed_connect_there_is_nothing_to_give_up_and_no_wait() -> None:
    """In Go a shutdown after a failed Connect has no effect; ours ends at once, also in the pause before a try."""
    scene = await streaming()
    scene.emulator.faults.add(FaultRule("Connect", code="OTSSomethingNew"))
    worker = scene.worker(RecordingSink(), reconnect=(50, 50))
    running = asyncio.create_task(worker.run())
    await until(lambda: len(scene.times("connect")) == 1)
    await asyncio.sleep(1)
    began = now()

    worker.drain()
    await running

    assert now() - began < 0.1
    assert scene.times("shutdown") == []


async def test_j09_a_client_that_is_gone_is_replaced_at_the_next_heartbeat() -> None:
    """Java sends heartbeats of a dead client up to the timeout of 300 s; ours connects again within its pause."""
    scene = await streaming()
    sink = RecordingSink()
    async with scene.running(worker := scene.worker(sink)):
        await until(lambda: worker.status.is_ready)
        began = now()
        scene.emulator.expire_clients("demo", scene.tunnel_id)
        await until(lambda: len(scene.times("connect")) == 2)
        assert now() - began <= INTERVAL + 3 + 0.1
        await scene.put(KEYS, [2])
        await until(lambda: len(sink.written) >= 100)


@pytest.mark.parametrize("operation", ["Connect", "Heartbeat"])
async def test_j09_a_denied_permission_is_final(operation: str) -> None:
    """Java repeats a call without permission without end; ours ends with the error."""
    scene = await streaming()
    scene.emulator.faults.add(FaultRule(operation, code="OTSPermissionDenied"))

    with pytest.raises(PermissionDenied):
        await scene.worker(RecordingSink()).run()

    assert len(scene.times("connect")) == 1
