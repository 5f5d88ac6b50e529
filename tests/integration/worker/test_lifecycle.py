"""A worker against the emulator in process: complete, ordered, handed over, drained."""

from __future__ import annotations

import asyncio

import pytest

from ots_emulator import Emulator, Settings
from ots_emulator.clock import ShiftedClock, SystemClock
from ots_emulator.server.faults import FaultRule
from ots_tunnel.errors import ParameterInvalid, SinkRejected
from ots_tunnel.model import FINISHED, ChannelStatus, Checkpoint, ClientId, TunnelType
from ots_tunnel.sinks import Batch, Guard
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene
from tests.support.sinks.sinks import RecordingSink, check_order
from tests.support.waiting import until

KEYS = [f"k{number:03}" for number in range(200)]
#: Heartbeat timeout where each record is to come once: beside other tests a process may stand still for a second.
PATIENT = 10


@pytest.fixture
def scene() -> EmulatorScene:
    return EmulatorScene(Emulator(settings=Settings(page_rows=50, init_delay=0.01)))


async def test_base_then_stream_is_complete_ordered_and_without_repeats(scene: EmulatorScene) -> None:
    await scene.create_table(partitions=3)
    await scene.put(KEYS)
    await scene.create_tunnel()
    sink = RecordingSink()

    async with scene.running(worker := scene.worker(sink, timeout=PATIENT)):
        await until(lambda: len(sink.written) >= 200, what="base")
        await scene.put(KEYS[:50], range(2, 12))
        await until(lambda: len(sink.written) >= 700, what="stream")
        await until(lambda: all(view.progress.caught_up for view in worker.status.channels.values()), what="caught up")
        document = worker.status.document()

    assert sorted(sink.written) == sorted(scene.everything())
    for rows in sink.by_channel.values():
        check_order(rows)
    assert document["rowsTotal"] == 700
    assert {channel["type"] for channel in document["channels"]} == {"Stream"}
    # the time since the last read counts: a process may stand still between that and this look
    assert all(channel["caughtUp"] and channel["lagSeconds"] <= 30 for channel in document["channels"])
    assert sink.closed


async def test_a_worker_tells_lags_by_the_service_s_clock() -> None:
    clock = ShiftedClock(SystemClock(), -300)
    scene = EmulatorScene(Emulator(settings=Settings(init_delay=0.01), clock=clock))
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    await scene.put(KEYS[:1])

    async with scene.running(worker := scene.worker(sink := RecordingSink(), timeout=PATIENT)):
        await until(lambda: len(sink.written) >= 1, what="the change")
        told = worker.status.source_clock()

    assert abs(told - clock.now()) < 60


async def test_children_of_a_split_come_after_their_parent(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    sink = RecordingSink()

    async with scene.running(scene.worker(sink, timeout=PATIENT)):
        await scene.put(KEYS, range(1, 4))
        scene.emulator.split("demo", TABLE)
        await scene.put(KEYS, range(4, 7))
        await until(lambda: len(sink.written) >= 1200, what="all")

    check_order(sink.written)
    assert sorted(sink.written) == sorted(scene.everything())
    assert len(sink.by_channel) == 3


async def test_a_base_data_tunnel_completes_and_the_worker_ends_by_itself(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.BaseData)
    sink = RecordingSink()
    worker = scene.worker(sink, exit_when_complete=True, timeout=PATIENT)

    await asyncio.wait_for(worker.run(), 20)

    assert worker.status.completed
    assert sorted(sink.written) == sorted(scene.everything())
    assert {channel.status for channel in scene.channels().values()} == {ChannelStatus.TERMINATED}


async def test_a_second_worker_takes_half_of_the_channels_without_repeats(scene: EmulatorScene) -> None:
    await scene.create_table(partitions=4)
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.Stream)
    first, second = RecordingSink(), RecordingSink()
    one = scene.worker(first, client_tag="one", timeout=PATIENT)
    two = scene.worker(second, client_tag="two", timeout=PATIENT)

    async with scene.running(one):
        await scene.put(KEYS, range(2, 5))
        await until(lambda: len(first.written) >= 600, what="first alone")
        async with scene.running(two):
            await until(lambda: len(one.status.channels) == len(two.status.channels) == 2, what="spread")
            await scene.put(KEYS, range(5, 8))
            await until(lambda: len(first.written) + len(second.written) >= 1200, what="both")
        await scene.put(KEYS, range(8, 10))
        await until(lambda: len(first.written) + len(second.written) >= 1600, what="first again")

    assert second.written
    stream = [(key, number) for key, number in scene.everything() if number > 1]
    assert sorted(first.written + second.written) == sorted(stream)
    check_order(first.written)
    check_order(second.written)
    assert two.status.hand_overs >= 1


async def test_an_expired_client_connects_again_and_nothing_is_lost(scene: EmulatorScene) -> None:
    await scene.create_table(partitions=2)
    await scene.create_tunnel(TunnelType.Stream)
    sink = RecordingSink()

    async with scene.running(worker := scene.worker(sink)):
        await scene.put(KEYS, range(1, 4))
        await until(lambda: len(sink.written) >= 600)
        before = worker.status.client_id
        scene.emulator.expire_clients("demo", scene.tunnel_id)
        await until(lambda: worker.status.client_id != before, what="new client")
        await scene.put(KEYS, range(4, 7))
        await until(lambda: set(scene.everything()) <= set(sink.written), what="all")


async def test_a_drained_worker_leaves_nothing_behind(scene: EmulatorScene) -> None:
    await scene.create_table(partitions=2)
    await scene.create_tunnel(TunnelType.Stream)
    gate = asyncio.Event()
    first, second = RecordingSink(gate=gate), RecordingSink()
    worker = scene.worker(first, checkpoint_interval=60, timeout=PATIENT)

    async with scene.running(worker):
        await scene.put(KEYS)
        await first.arrived.wait()
        worker.drain()
        for _ in range(50):
            await asyncio.sleep(0)
        assert scene.owners()  # nothing is handed back while a write is under way
        gate.set()

    assert scene.owners() == []
    assert scene.emulator.tunnel("demo", scene.tunnel_id).clients == {}
    confirmed = len(first.written)
    async with scene.running(scene.worker(second, timeout=PATIENT)):
        await until(lambda: confirmed + len(second.written) >= 200, what="rest")
    assert sorted(first.written + second.written) == sorted(scene.everything())


async def test_a_write_that_hangs_is_abandoned_unconfirmed_by_the_drain(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    hanging, second = RecordingSink(gate=asyncio.Event()), RecordingSink()
    worker = scene.worker(hanging, drain=0.8)

    async with scene.running(worker):
        await scene.put(KEYS)
        await hanging.arrived.wait()
        worker.drain()

    assert hanging.written == []
    async with scene.running(scene.worker(second, timeout=PATIENT)):
        await until(lambda: len(second.written) >= 200, what="all again")
    assert sorted(second.written) == sorted(scene.everything())


async def test_closing_at_once_does_not_wait_for_the_sink(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    hanging = RecordingSink(gate=asyncio.Event())
    worker = scene.worker(hanging, drain=60, timeout=PATIENT)

    async with scene.running(worker):
        await scene.put(KEYS)
        await hanging.arrived.wait()
        worker.interrupt()
        worker.interrupt()

    assert scene.owners()  # the write may still take effect: the service's timeout frees the channel


async def test_a_worker_whose_sink_does_not_open_can_be_drained(scene: EmulatorScene) -> None:
    class Closed(RecordingSink):
        async def open(self) -> None:
            self.arrived.set()
            await asyncio.Event().wait()

    sink = Closed()
    worker = scene.worker(sink)
    running = asyncio.create_task(worker.run())
    await sink.arrived.wait()

    worker.drain()

    await asyncio.wait_for(running, 10)
    assert sink.closed


@pytest.mark.parametrize("operation", ["Connect", "Heartbeat"])
async def test_a_drain_ends_in_its_time_also_while_a_call_hangs(scene: EmulatorScene, operation: str) -> None:
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    worker = scene.worker(RecordingSink(), interval=20, timeout=60, drain=1)
    scene.emulator.faults.add(FaultRule(operation, latency=30, count=1))
    running = asyncio.create_task(worker.run())
    await until(lambda: len(scene.emulator.faults) == 0, what="the call hangs")

    worker.drain()
    await asyncio.wait_for(running, 15)  # the call hangs for twice as long


async def test_a_worker_that_cannot_connect_ends_at_the_second_order(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    scene.emulator.faults.add(FaultRule("Connect", latency=30, count=1))
    worker = scene.worker(sink := RecordingSink())
    running = asyncio.create_task(worker.run())
    await until(lambda: len(scene.emulator.faults) == 0, what="connecting")

    worker.interrupt()
    await asyncio.sleep(0.05)
    assert not running.done()  # a client that was made has to be given up in order
    worker.interrupt()

    await asyncio.wait_for(running, 10)
    assert sink.closed


async def test_a_stale_sequence_number_of_our_own_is_adopted(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    sink = RecordingSink()
    scene.emulator.faults.add(FaultRule(operation="Checkpoint", count=1, drop_response=True))

    async with scene.running(worker := scene.worker(sink, timeout=PATIENT)):
        await scene.put(KEYS, range(1, 4))
        await until(lambda: len(sink.written) >= 600)
        (view,) = worker.status.channels.values()
        await until(lambda: view.checkpoint_age() == 0 and view.progress.caught_up, what="durable")

    assert sorted(sink.written) == sorted(scene.everything())


async def test_a_foreign_checkpoint_means_ownership_is_lost(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    sink = RecordingSink()
    ((channel_id, _),) = scene.channels().items()
    start = await scene.client.get_checkpoint(scene.tunnel_id, ClientId(""), channel_id)

    async with scene.running(worker := scene.worker(sink, interval=0.3, timeout=PATIENT)):
        await scene.put(KEYS[:10])
        stored = scene.emulator.tunnel("demo", scene.tunnel_id).channels[channel_id]
        await until(lambda: len(sink.written) >= 10 and stored.sequence >= 1)
        view = worker.status.channels[channel_id]
        await scene.client.checkpoint(scene.tunnel_id, ClientId("other"), channel_id, Checkpoint(start.token, 1000))
        await until(lambda: view.progress.error is not None, what="loss seen")
        assert "OwnershipLost" in (view.progress.error or "")
        # The channel is opened again, from the other's token.
        await until(lambda: worker.status.channels.get(channel_id) not in (None, view), what="opened again")
        await until(lambda: len(sink.written) >= 20, what="read again")


async def test_a_refusing_sink_ends_the_worker_and_drops_nothing(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    sink = RecordingSink(error=SinkRejected("OTSInvalidPK", "no such key"))
    worker = scene.worker(sink)
    running = asyncio.create_task(worker.run())
    await scene.put(KEYS)

    with pytest.raises(SinkRejected):
        await asyncio.wait_for(running, 10)

    assert "OTSInvalidPK" in (worker.status.error or "")
    assert scene.owners() == []
    second = RecordingSink()
    async with scene.running(scene.worker(second, timeout=PATIENT)):
        await until(lambda: len(second.written) >= 200)
    assert sorted(second.written) == sorted(scene.everything())


async def test_a_refused_record_costs_the_other_channels_nothing(scene: EmulatorScene) -> None:
    class Choosy(RecordingSink):
        async def write(self, batch: Batch, guard: Guard) -> None:
            if any(record.primary_key == (("pk", "bad"),) for record in batch.records):
                raise SinkRejected("OTSInvalidPK", "no such key")
            await super().write(batch, guard)

    errors: set[object] = set()
    await scene.create_table(partitions=4)
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.Stream)
    first, second = Choosy(), RecordingSink()
    worker = scene.worker(first, checkpoint_interval=60, timeout=PATIENT)
    running = asyncio.create_task(worker.run())
    await scene.put(KEYS, [2])
    await until(lambda: len(first.written) >= 200, what="all channels")
    await scene.put(["bad"])

    while not running.done():
        errors |= {channel["error"] for channel in worker.status.document()["channels"]}
        await asyncio.sleep(0.005)
    with pytest.raises(SinkRejected):
        await running

    assert errors == {None, "SinkRejected: OTSInvalidPK: no such key"}
    async with scene.running(scene.worker(second, timeout=PATIENT)):
        await until(lambda: ("bad", 1) in second.written, what="refused before")
    assert second.written == [("bad", 1)]  # everything else had become durable


async def test_a_deleted_tunnel_ends_the_worker(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    running = asyncio.create_task(scene.worker(RecordingSink()).run())
    await until(lambda: bool(scene.owners()))

    await scene.client.delete_tunnel(TABLE, "t")

    with pytest.raises(ParameterInvalid):
        await asyncio.wait_for(running, 10)


async def test_one_channel_at_a_time_still_reads_all(scene: EmulatorScene) -> None:
    await scene.create_table(partitions=4)
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.BaseAndStream)
    sink = RecordingSink(delay=0.01)
    most = 0

    async with scene.running(scene.worker(sink, max_parallel_channels=1, timeout=PATIENT)):
        while len(sink.written) < 200:
            most = max(most, sink.writing)
            await asyncio.sleep(0.002)

    assert most == 1
    assert sorted(sink.written) == sorted(scene.everything())


async def test_finished_is_durable_before_terminated_is_reported(scene: EmulatorScene) -> None:
    await scene.create_table(partitions=2)
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.BaseData)
    tunnel = scene.emulator.tunnel("demo", scene.tunnel_id)

    async with scene.running(scene.worker(RecordingSink())):
        while any(channel.status is not ChannelStatus.TERMINATED for channel in tunnel.channels.values()):
            for channel in tunnel.channels.values():
                assert channel.status is not ChannelStatus.TERMINATED or channel.token == FINISHED
            await asyncio.sleep(0.001)
