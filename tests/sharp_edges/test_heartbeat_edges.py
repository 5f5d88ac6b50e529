"""Heartbeats wait for nothing, failed ones are repeated, and no channel is handed back during a write."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from ots_emulator.server.faults import FaultRule
from ots_tunnel.model import ChannelStatus
from ots_tunnel.protocol import tunnel_pb2 as pb
from tests.support.emulator.virtual_scene import KEYS, VirtualScene, now, streaming
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

INTERVAL, TIMEOUT = 10, 40


@pytest.mark.parametrize("operation", ["GetCheckpoint", "ReadRecords", "Checkpoint"])
async def test_g12_heartbeats_wait_for_no_other_call(operation: str) -> None:
    """In Go and Java heartbeats wait while checkpoints are read; ours continue, whichever call hangs."""
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


async def test_the_fence_counts_from_the_sending_of_a_heartbeat_however_late_its_answer_comes() -> None:
    """The service may have received it long before it answered."""
    scene, sink = await streaming(), RecordingSink()
    scene.emulator.faults.add(FaultRule("Heartbeat", latency=INTERVAL - 1))
    async with scene.running(scene.worker(sink)):
        await until(lambda: len(scene.times("heartbeat")) == 4)
        closes = scene.times("heartbeat")[-1] + TIMEOUT - scene.settings().write_deadline
        await asyncio.sleep(INTERVAL - 0.5)
        scene.emulator.faults.add(FaultRule("Heartbeat", code="OTSServerBusy"))
        await asyncio.sleep(closes - 9 - now())
        await scene.put(KEYS, [2])
        await until(lambda: len(sink.written) == 100)
        await asyncio.sleep(closes + 0.1 - now())
        await scene.put(KEYS, [3])
        await asyncio.sleep(INTERVAL - 2)
        assert len(sink.written) == 100
        scene.emulator.clear_faults()


@pytest.mark.parametrize("code", ["OTSAuthFailed", "OTSSomethingNew", "OTSTunnelServerUnavailable"])
async def test_g14_a_transient_error_ends_neither_client_nor_worker(code: str) -> None:
    """In Go any error that is not temporary ends the worker; ours repeats the heartbeat with the same client."""
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


async def test_j10_a_channel_is_not_given_back_while_its_records_are_written() -> None:
    """Java closes by force after three heartbeats in CLOSING while user code runs; ours waits until it has ended."""
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
    """A channel does not stay in CLOSING forever: its write is abandoned, and it is handed back D later."""
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
        settings = scene.settings(drain=100)
        least = settings.abandon_after + settings.write_deadline
        assert least <= waited <= least + 2
        assert sink.gate is not None
        sink.gate.set()


def _written_by(scene: VirtualScene) -> str:
    """The channel of the only record that was written."""
    tunnel = scene.emulator.tunnel("demo", scene.tunnel_id)
    table = scene.emulator.instances["demo"].table(tunnel.table_name)
    (partition,) = [partition for partition in table.log.partitions.values() if len(partition.entries)]
    return partition.id


def _reported(scene: VirtualScene, channel_id: str) -> set[int]:
    return {
        channel.status for report in scene.reports for channel in report.channels if channel.channel_id == channel_id
    }
