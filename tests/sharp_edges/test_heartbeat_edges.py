"""Heartbeats and the client's life: they wait for nothing, hiccups pass, and every client that was made is given up."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import pytest

from ots_emulator.faults import FaultRule
from ots_tunnel.errors import PermissionDenied, SinkRejected, TunnelExpired
from ots_tunnel.model import ChannelStatus, TunnelType
from ots_tunnel.protocol import tunnel_pb2 as pb
from tests.integration.scene import RecordingSink
from tests.sharp_edges.stage import VirtualScene, until

pytestmark = pytest.mark.looptime

KEYS = [f"k{number:03}" for number in range(100)]
INTERVAL, TIMEOUT = 10, 40


async def streaming() -> VirtualScene:
    """A tunnel of four stream channels; made inside the test, where time is virtual."""
    scene = VirtualScene()
    await scene.create_table(partitions=4)
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.Stream)
    return scene


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("operation", ["GetCheckpoint", "ReadRecords", "Checkpoint"])
async def test_g12_heartbeats_wait_for_no_other_call(operation: str) -> None:
    """In Go and Java heartbeats wait until checkpoints are read, one by one; ours go on whatever call hangs."""
    scene = await streaming()
    scene.emulator.faults.add(FaultRule(operation=operation, latency=35, count=8))
    sink = RecordingSink()

    async with scene.running(scene.worker(sink, checkpoint_interval=5)):
        await scene.put(KEYS, [2])
        await until(lambda: len(sink.written) >= 100)
        await asyncio.sleep(100)

    gaps = [later - earlier for earlier, later in itertools.pairwise(scene.times("heartbeat"))]
    assert max(gaps) <= INTERVAL + 0.001


async def test_g12_checkpoints_of_new_channels_are_read_side_by_side() -> None:
    """In Go n new channels cost n round trips in a row; ours are opened all at once."""
    scene = await streaming()
    scene.emulator.faults.add(FaultRule(operation="GetCheckpoint", latency=5))
    async with scene.running(scene.worker(RecordingSink())):
        await until(lambda: len(scene.times("getcheckpoint")) == 4)
        opened = scene.times("getcheckpoint")
        await asyncio.sleep(6)
        scene.emulator.clear_faults()

    assert max(opened) - min(opened) < 0.1


@pytest.mark.parametrize("code", ["OTSAuthFailed", "OTSSomethingNew", "OTSTunnelServerUnavailable"])
async def test_g14_a_hiccup_ends_neither_client_nor_worker(code: str) -> None:
    """In Go any error that is not temporary ends the worker at once; ours beats on with the same client."""
    scene = await streaming()
    sink = RecordingSink()
    async with scene.running(worker := scene.worker(sink)):
        await until(lambda: worker.status.is_ready)
        client = worker.status.client_id
        scene.emulator.faults.add(FaultRule("Heartbeat", code=code, count=3))
        await until(lambda: not len(scene.emulator.faults))
        await scene.put(KEYS, [2])
        await until(lambda: len(sink.written) >= 100)
        assert worker.status.client_id == client

    assert len(scene.times("connect")) == 1


async def _drained(scene: VirtualScene, running: asyncio.Task[None], drain: Callable[[], None]) -> None:
    drain()
    await running


async def _cancelled(scene: VirtualScene, running: asyncio.Task[None], drain: Callable[[], None]) -> None:
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def _denied(scene: VirtualScene, running: asyncio.Task[None], drain: Callable[[], None]) -> None:
    scene.emulator.faults.add(FaultRule("Heartbeat", code="OTSPermissionDenied", count=1))
    with pytest.raises(PermissionDenied):
        await running


async def _expired(scene: VirtualScene, running: asyncio.Task[None], drain: Callable[[], None]) -> None:
    scene.emulator.expire_tunnel("demo", scene.tunnel_id)
    with pytest.raises(TunnelExpired):
        await running


async def _refused(scene: VirtualScene, running: asyncio.Task[None], drain: Callable[[], None]) -> None:
    await scene.put(["bad"], [7])
    with pytest.raises(SinkRejected):
        await running


async def _silent(scene: VirtualScene, running: asyncio.Task[None], drain: Callable[[], None]) -> None:
    # Beyond the local timeout while the service still knows the client: its answers were lost.
    before = list(scene.clients)
    scene.emulator.faults.add(FaultRule("Heartbeat", drop_response=True))
    await until(lambda: len(scene.times("shutdown")) == 1)
    assert scene.clients != before
    scene.emulator.clear_faults()
    drain()
    await running


class Choosy(RecordingSink):
    """Refuses the number 7."""

    async def write(self, batch: object, guard: object) -> None:
        await super().write(batch, guard)  # type: ignore[arg-type]
        if any(number == 7 for _, number in self.written):
            raise SinkRejected("OTSInvalidPK", "no such key")


@pytest.mark.parametrize("end", [_drained, _cancelled, _denied, _expired, _refused, _silent])
async def test_g14_every_exit_gives_the_client_up(end: Callable[..., object]) -> None:
    """Go ends without Shutdown after an error, so that channels stay locked for 300 s; ours frees them at any exit."""
    scene = await streaming()
    worker = scene.worker(Choosy())
    running = asyncio.create_task(worker.run())
    await until(lambda: worker.status.is_ready)
    await asyncio.sleep(15)
    began = now()

    await end(scene, running, worker.drain)  # type: ignore[misc]

    assert scene.clients == []
    assert scene.owners() == []
    assert len(scene.times("shutdown")) == len(scene.times("connect"))
    assert now() - began < 2 * TIMEOUT


async def test_g16_a_client_that_connects_while_the_worker_is_told_to_stop_is_given_up() -> None:
    """In Go a shutdown before the connect's answer leaves a client behind; ours waits for it and gives it up."""
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
    """In Go a shutdown after a failed connect is no end; ours ends at once, also in the pause before the next try."""
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
    """Java beats on with a dead client until the timeout, up to 300 s; ours connects anew within its pause."""
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
    """Java tries a denied permission for ever; ours ends with it."""
    scene = await streaming()
    scene.emulator.faults.add(FaultRule(operation, code="OTSPermissionDenied"))

    with pytest.raises(PermissionDenied):
        await scene.worker(RecordingSink()).run()

    assert len(scene.times("connect")) == 1


async def test_j10_a_channel_is_not_given_back_while_its_records_are_written() -> None:
    """Java closes by force after three heartbeats in CLOSING, beside the running code; ours stays until it is done."""
    scene = await streaming()
    sink = RecordingSink(gate=asyncio.Event())
    assert sink.gate is not None
    async with scene.running(scene.worker(sink, drain=1000)):
        await scene.put(["k000"], [2])
        await sink.arrived.wait()
        channel_id = _written_by(scene)
        scene.emulator.rebalance("demo", scene.tunnel_id, channel_id)
        beats = len(scene.times("heartbeat"))
        await until(lambda: len(scene.times("heartbeat")) > beats + 20)
        assert scene.channels()[channel_id].status is ChannelStatus.CLOSING
        assert _reported(scene, channel_id) <= {pb.OPEN, pb.CLOSING}
        sink.gate.set()
        await until(lambda: pb.CLOSE in _reported(scene, channel_id))
        assert sink.written == [("k000", 2)]


async def test_j10_a_write_that_does_not_end_is_left_after_a_bounded_time_and_its_doubt() -> None:
    """A channel must not stay in CLOSING for ever either: its write is abandoned, and given back when D is over."""
    scene = await streaming()
    sink = RecordingSink(gate=asyncio.Event())
    worker = scene.worker(sink, drain=100)
    async with scene.running(worker):
        await scene.put(["k000"], [2])
        await sink.arrived.wait()
        channel_id = _written_by(scene)
        scene.emulator.rebalance("demo", scene.tunnel_id, channel_id)
        beats = len(scene.times("heartbeat"))
        await until(lambda: pb.CLOSE in _reported(scene, channel_id))
        waited = now() - scene.times("heartbeat")[beats]  # the answer to this one says CLOSING
        least = worker._settings.abandon_after + worker._settings.write_deadline
        assert least <= waited <= least + 2
        assert sink.gate is not None
        sink.gate.set()


def _written_by(scene: VirtualScene) -> str:
    """The channel of the only record that was written."""
    tunnel = scene.emulator._tunnel("demo", scene.tunnel_id)
    table = scene.emulator.instances["demo"].table(tunnel.table_name)
    (partition,) = [partition for partition in table.log.partitions.values() if len(partition.entries)]
    return partition.id


def _reported(scene: VirtualScene, channel_id: str) -> set[int]:
    return {
        channel.status for report in scene.reports for channel in report.channels if channel.channel_id == channel_id
    }
