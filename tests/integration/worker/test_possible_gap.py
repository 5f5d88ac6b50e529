"""A worker that comes too late for the retention: it stops there, or says so and goes on, but never silently.

The service's time is the loop's. The stream is kept for an hour.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

import pytest

from ots_emulator.server.faults import FaultRule
from ots_emulator.settings import AfterRetention
from ots_tunnel.errors import ConnectError, PossibleGap, TunnelError, TunnelExpired
from ots_tunnel.model import ChannelStatus, TunnelType
from ots_tunnel.sinks import Batch, Guard
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.emulator.emulator_scene import TABLE
from tests.support.emulator.virtual_scene import VirtualScene
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

HOUR = 3600.0
GOES_ON = [AfterRetention.OLDEST, AfterRetention.LATEST, AfterRetention.LATEST_AT_OPEN]
#: Heartbeats and checkpoints once a minute, so that hours pass with few calls.
CALM = {"interval": 60, "timeout": 300, "checkpoint_interval": 60}


@dataclass
class Late:
    """A tunnel of which `k1` was consumed; `k2` is gone from the log, `k3` is left, and no worker runs."""

    scene: VirtualScene
    consumed_at: float = 0.0
    sink: RecordingSink = field(default_factory=RecordingSink)

    @classmethod
    async def made(cls, after_retention: AfterRetention, **settings: object) -> Late:
        late = cls(VirtualScene(after_retention=after_retention, tunnel_retention_hours=1, **settings))
        scene = late.scene
        await scene.create_table()
        await scene.create_tunnel(TunnelType.Stream)
        await scene.put(["k1"])
        first = RecordingSink()
        async with scene.running(scene.worker(first, checkpoint_interval=1)):
            await until(lambda: first.written == [("k1", 1)])
        late.consumed_at = scene.emulator.clock.now()
        await scene.put(["k2"])
        await asyncio.sleep(0.9 * HOUR)
        await scene.put(["k3"])
        await asyncio.sleep(0.2 * HOUR)
        return late

    def worker(self, **settings: object) -> TunnelWorker:
        return self.scene.worker(self.sink, **settings)

    async def stopped_by(self, worker: TunnelWorker) -> TunnelError:
        with pytest.raises(TunnelError) as caught:
            await worker.run()
        return caught.value


@pytest.mark.parametrize("after_retention", GOES_ON)
async def test_a_worker_stops_before_a_possible_gap_and_so_does_every_later_one(
    after_retention: AfterRetention,
) -> None:
    late = await Late.made(after_retention)

    for _ in range(3):
        worker = late.worker()
        error = await late.stopped_by(worker)

        assert isinstance(error, PossibleGap)
        (channel,) = late.scene.channels()
        assert error.channel_id == channel
        assert error.start == pytest.approx(late.consumed_at, abs=60)
        assert error.end >= late.consumed_at + 0.9 * HOUR - 60
        document = worker.status.document()
        assert document["error"] == f"PossibleGap: {error}"
        assert [gap["channel"] for gap in document["possibleGaps"]] == [channel]
        assert worker.status.metrics.registry.value("ots_tunnel_possible_gaps_total", {"tunnel": "t"}) == 1
        await asyncio.sleep(60)

    assert late.sink.written == []
    (info,) = (await late.scene.describe()).channels
    assert info.consume_point_ns / 1e9 == pytest.approx(late.consumed_at, abs=60), "no checkpoint has passed the gap"


@pytest.mark.parametrize("after_retention", GOES_ON)
async def test_a_worker_that_may_goes_on_and_says_so_once(
    after_retention: AfterRetention, caplog: pytest.LogCaptureFixture
) -> None:
    late = await Late.made(after_retention)
    caplog.set_level(logging.WARNING)
    worker = late.worker(on_possible_gap="Continue")

    async with late.scene.running(worker):
        await until(lambda: worker.status.possible_gaps)
        await late.scene.put(["k4"])
        await until(lambda: ("k4", 1) in late.sink.written)

    expected = [("k3", 1), ("k4", 1)] if after_retention is AfterRetention.OLDEST else [("k4", 1)]
    assert late.sink.written == expected
    said = [record for record in caplog.records if getattr(record, "action", "") == "possible_gap"]
    assert len(said) == 1
    assert "may be missing" in said[0].error
    # The next worker begins behind the gap.
    after = late.worker()
    async with late.scene.running(after):
        await late.scene.put(["k5"])
        await until(lambda: ("k5", 1) in late.sink.written)
    assert after.status.possible_gaps == {}


async def test_an_expired_tunnel_stays_that() -> None:
    late = await Late.made(AfterRetention.EXPIRE)

    assert isinstance(await late.stopped_by(late.worker()), TunnelExpired)


async def test_a_worker_that_is_not_too_late_goes_on_in_silence() -> None:
    scene = VirtualScene(after_retention=AfterRetention.OLDEST, tunnel_retention_hours=1)
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    await scene.put(["k1"])
    await asyncio.sleep(HOUR - 30)
    sink = RecordingSink()
    worker = scene.worker(sink)

    async with scene.running(worker):
        await until(lambda: sink.written == [("k1", 1)])
    assert worker.status.possible_gaps == {}


@pytest.mark.parametrize("after_retention", GOES_ON)
@pytest.mark.parametrize("splits", [False, True], ids=["", "splits"])
async def test_a_tunnel_that_nobody_consumed_counts_from_its_start(
    after_retention: AfterRetention, splits: bool
) -> None:
    scene = VirtualScene(after_retention=after_retention, tunnel_retention_hours=1)
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    created = scene.emulator.clock.now()
    await scene.put(["k1", "k2"])
    if splits:
        scene.emulator.split("demo", TABLE)
    await asyncio.sleep(1.5 * HOUR)

    with pytest.raises(PossibleGap) as caught:
        await scene.worker(RecordingSink()).run()
    assert caught.value.start == pytest.approx(created, abs=1)


@pytest.mark.parametrize("idle_advance", [True, False])
async def test_an_idle_table_has_no_gap(idle_advance: bool) -> None:
    """Also a channel that is handed back and opened again, while its consume point stands still."""
    late = await Late.made(AfterRetention.OLDEST, idle_advance=idle_advance)
    scene = late.scene
    worker = late.worker(on_possible_gap="Continue", **CALM)
    async with scene.running(worker):
        await until(lambda: late.sink.written)
        worker.status.possible_gaps.clear()
        await asyncio.sleep(1.5 * HOUR)
        scene.emulator.expire_clients("demo", scene.tunnel_id)
        await asyncio.sleep(1.5 * HOUR)
        await scene.put(["k4"])
        await until(lambda: ("k4", 1) in late.sink.written)
    assert worker.status.possible_gaps == {}


async def test_an_idle_table_has_no_gap_for_the_next_worker() -> None:
    late = await Late.made(AfterRetention.OLDEST)
    async with late.scene.running(late.worker(on_possible_gap="Continue", **CALM)):
        await until(lambda: late.sink.written)
        await asyncio.sleep(1.5 * HOUR)

    following = late.worker()
    async with late.scene.running(following):
        await late.scene.put(["k4"])
        await until(lambda: ("k4", 1) in late.sink.written)
    assert following.status.possible_gaps == {}


async def test_a_consume_point_that_stands_still_is_all_that_the_next_worker_knows() -> None:
    """Nothing tells an idle table from a lost stream then, and what cannot be excluded is reported."""
    late = await Late.made(AfterRetention.OLDEST, idle_advance=False)
    async with late.scene.running(late.worker(on_possible_gap="Continue", **CALM)):
        await until(lambda: late.sink.written)
        await asyncio.sleep(1.5 * HOUR)

    assert isinstance(await late.stopped_by(late.worker()), PossibleGap)


@dataclass
class Overtaken:
    """A worker that has written `k1` while `k2` was dropped from the log, and whose next read comes behind that."""

    scene: VirtualScene
    sink: RecordingSink
    worker: TunnelWorker
    running: asyncio.Task[None]

    @classmethod
    async def made(cls, after_retention: AfterRetention, *, splits: bool = False, **settings: object) -> Overtaken:
        scene = VirtualScene(after_retention=after_retention, tunnel_retention_hours=1)
        await scene.create_table()
        await scene.create_tunnel(TunnelType.Stream)
        sink = RecordingSink(gate=asyncio.Event())
        worker = scene.worker(sink, memory_budget_bytes=1, **CALM, **settings)  # one page at a time
        running = asyncio.create_task(worker.run())
        await until(scene.owners)
        await scene.put(["k1"])
        await until(lambda: sink.writing)
        await scene.put(["k2"])
        if splits:
            scene.emulator.split("demo", TABLE)
        await asyncio.sleep(2 * HOUR)
        await scene.put(["k3"])
        assert sink.gate is not None
        sink.gate.set()
        return cls(scene, sink, worker, running)


@pytest.mark.parametrize("after_retention", GOES_ON)
@pytest.mark.parametrize("splits", [False, True], ids=["", "splits"])
async def test_a_sink_that_hangs_for_longer_than_the_retention(after_retention: AfterRetention, splits: bool) -> None:
    """The page that was read is written; the next one lies behind a gap."""
    late = await Overtaken.made(after_retention, splits=splits)

    with pytest.raises(PossibleGap) as caught:
        await late.running

    assert late.sink.written == [("k1", 1)]
    info = (await late.scene.describe()).channels[0]
    assert info.rows == 1, "what was written before the gap is stored"
    assert info.status is not ChannelStatus.TERMINATED, "the next worker finds the gap again"
    read = info.consume_point_ns / 1e9
    assert caught.value.start == pytest.approx(read, abs=1)
    assert caught.value.end - read > HOUR


@pytest.mark.parametrize("after_retention", GOES_ON)
async def test_a_worker_that_is_overtaken_by_the_retention_goes_on_where_it_may(
    after_retention: AfterRetention, caplog: pytest.LogCaptureFixture
) -> None:
    late = await Overtaken.made(after_retention, on_possible_gap="Continue")

    await until(lambda: late.worker.status.possible_gaps)
    await late.scene.put(["k4"])
    await until(lambda: ("k4", 1) in late.sink.written)

    late.worker.drain()
    await late.running
    kept = [("k3", 1)] if after_retention is AfterRetention.OLDEST else []
    assert late.sink.written == [("k1", 1), *kept, ("k4", 1)]
    assert [getattr(record, "action", "") for record in caplog.records].count("possible_gap") == 1


@pytest.mark.parametrize("after_retention", GOES_ON)
async def test_a_worker_that_may_goes_on_with_the_children_of_a_channel_that_was_dropped_unread(
    after_retention: AfterRetention,
) -> None:
    late = await Overtaken.made(after_retention, splits=True, on_possible_gap="Continue")
    parent = next(iter(late.scene.channels()))

    await until(lambda: parent in late.worker.status.possible_gaps)
    await late.scene.put(["k4"])
    await until(lambda: ("k4", 1) in late.sink.written)

    late.worker.drain()
    await late.running


TRIMMED = {"code": "OTSTunnelServerUnavailable", "message": "OTSTrimmedDataAccess: already trimmed", "status": 400}


@pytest.mark.parametrize("on_possible_gap", ["Stop", "Continue"])
async def test_records_that_are_dropped_within_the_retention_are_a_gap_as_well(on_possible_gap: str) -> None:
    scene = VirtualScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    sink = RecordingSink()
    worker = scene.worker(sink, on_possible_gap=on_possible_gap)
    running = asyncio.create_task(worker.run())
    await scene.put(["k1"])
    await until(lambda: sink.written == [("k1", 1)])
    scene.emulator.faults.add(FaultRule("ReadRecords", count=1, **TRIMMED))
    await until(lambda: worker.status.possible_gaps)
    await scene.put(["k2"])

    if on_possible_gap == "Continue":
        await until(lambda: sink.written == [("k1", 1), ("k2", 1)])
        worker.drain()
        await running
        return
    with pytest.raises(PossibleGap):
        await running
    assert sink.written == [("k1", 1)]


async def test_reads_that_are_refused_without_end_end_the_worker_that_may_pass_gaps() -> None:
    scene = VirtualScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    scene.emulator.faults.add(FaultRule("ReadRecords", **TRIMMED))

    with pytest.raises(TunnelExpired, match="already trimmed"):
        await scene.worker(RecordingSink(), on_possible_gap="Continue").run()
    assert len(scene.times("readrecords")) == 2


@pytest.mark.parametrize("operation", ["DescribeTable", "DescribeTunnel"])
async def test_a_key_that_may_not_describe_still_consumes(operation: str, caplog: pytest.LogCaptureFixture) -> None:
    """Without the table's retention the longest one counts, without the tunnel the token's time."""
    late = await Late.made(AfterRetention.OLDEST)
    late.scene.emulator.faults.add(FaultRule(operation, code="OTSNoPermissionAccess"))

    if operation == "DescribeTable":
        worker = late.worker()
        async with late.scene.running(worker):
            await until(lambda: late.sink.written == [("k3", 1)])
    else:
        assert isinstance(await late.stopped_by(late.worker()), PossibleGap)
    assert "retention_unknown" in {getattr(record, "action", "") for record in caplog.records}


async def test_a_key_that_may_not_describe_knows_the_longest_retention() -> None:
    late = await Late.made(AfterRetention.OLDEST)
    late.scene.emulator.faults.add(FaultRule("DescribeTable", code="OTSNoPermissionAccess"))
    await asyncio.sleep(168 * HOUR)

    assert isinstance(await late.stopped_by(late.worker()), PossibleGap)


async def test_what_lies_behind_the_end_time_is_no_gap() -> None:
    late = await Late.made(AfterRetention.OLDEST)
    end_us = int((late.consumed_at - 60) * 1e6)

    await asyncio.wait_for(late.worker(end_us=end_us, exit_when_complete=True).run(), 1000)

    assert late.sink.written == []


async def test_children_of_a_channel_that_ended_lately() -> None:
    scene = VirtualScene(after_retention=AfterRetention.OLDEST, tunnel_retention_hours=1)
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    sink = RecordingSink()
    worker = scene.worker(sink, **CALM)
    async with scene.running(worker):
        await scene.put(["k1"])
        await asyncio.sleep(1.5 * HOUR)
        await scene.put(["k2"])
        scene.emulator.split("demo", TABLE)
        await scene.put(["k1", "k3"], [2])
        await until(lambda: ("k3", 2) in sink.written and ("k1", 2) in sink.written)
    assert worker.status.possible_gaps == {}


@pytest.mark.parametrize("waits", [0, 120])
async def test_the_child_of_a_channel_that_has_just_ended_has_no_gap(waits: float) -> None:
    # the description that opened the parent shows the child as one that waits: it cannot tell where the parent ended
    scene = VirtualScene(after_retention=AfterRetention.OLDEST, tunnel_retention_hours=1)
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    async with scene.running(scene.worker(RecordingSink())):
        for number in range(90):
            await scene.put(["k1", "k2"], [number])
            await asyncio.sleep(60)
    scene.emulator.split("demo", TABLE)
    await scene.put(["k1", "k2"], [100])
    gate, sink = asyncio.Event(), RecordingSink()
    sink.gate = gate
    worker = scene.worker(sink)

    async with scene.running(worker):
        await asyncio.sleep(5 + waits)
        gate.set()
        await until(lambda: {("k1", 100), ("k2", 100)} <= set(sink.written))

    assert worker.status.possible_gaps == {}


@dataclass
class Poisoned(RecordingSink):
    """Refuses one key for a while, so that its channel is opened again and again."""

    poison: str = ""

    async def write(self, batch: Batch, guard: Guard) -> None:
        if any(record.primary_key[0][1] == self.poison for record in batch.records):
            raise ConnectError("the user's code raised")
        await super().write(batch, guard)


@pytest.mark.parametrize("splits", [False, True])
async def test_what_a_channel_lost_is_not_hidden_by_the_end_of_another_one(splits: bool) -> None:
    scene = VirtualScene(after_retention=AfterRetention.OLDEST, tunnel_retention_hours=1)
    await scene.create_table(partitions=2)
    await scene.put([f"k{number:03}" for number in range(100)])
    await scene.create_tunnel(TunnelType.Stream)
    sink = Poisoned(poison="k001")
    worker = scene.worker(sink, **CALM)
    task = asyncio.create_task(worker.run())
    await scene.put(["k001", "k090"], [7])  # the first is never confirmed, the second is in the other partition
    await until(lambda: ("k090", 7) in sink.written)
    await asyncio.sleep(0.6 * HOUR)
    if splits:
        scene.emulator.split("demo", TABLE, key=(b"k090",))
        await scene.put(["k090"], [8])
        await until(lambda: ChannelStatus.TERMINATED in {found.status for found in scene.channels().values()})
    await asyncio.sleep(0.6 * HOUR)  # what was not confirmed is gone
    await scene.put(["k002"], [9])
    sink.poison = ""

    with pytest.raises(PossibleGap):
        await asyncio.wait_for(task, 1200)

    assert ("k002", 9) not in sink.written


async def old_tunnel_that_splits() -> tuple[VirtualScene, RecordingSink]:
    """A tunnel older than the retention whose channel is read to its end; its children were never consumed."""
    scene = VirtualScene(after_retention=AfterRetention.OLDEST, tunnel_retention_hours=1, assign_interval=600)
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    sink = RecordingSink()
    async with scene.running(scene.worker(sink)):
        for number in range(90):
            await scene.put(["k1", "k2"], [number])
            await asyncio.sleep(60)
        scene.emulator.split("demo", TABLE)
        await until(lambda: ChannelStatus.TERMINATED in {found.status for found in scene.channels().values()})
    assert sorted(found.consume_point_ns for found in (await scene.describe()).channels)[:2] == [0, 0]
    return scene, sink


@pytest.mark.parametrize("later", [0.0, 0.5 * HOUR])
async def test_a_child_begins_where_its_own_parents_ended(later: float) -> None:
    scene, sink = await old_tunnel_that_splits()
    await asyncio.sleep(later)
    await scene.put(["k1", "k2"], [100])
    worker = scene.worker(sink)

    async with scene.running(worker):
        await until(lambda: {("k1", 100), ("k2", 100)} <= set(sink.written))

    assert worker.status.possible_gaps == {}


async def test_a_child_whose_parents_cannot_be_asked_for_begins_with_the_tunnel(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene, sink = await old_tunnel_that_splits()
    scene.emulator.add_fault(FaultRule(operation="DescribeStream", code="OTSNoPermissionAccess"))
    await scene.put(["k1", "k2"], [100])
    caplog.set_level(logging.WARNING)

    with pytest.raises(PossibleGap):
        await asyncio.wait_for(scene.worker(sink).run(), 1200)

    assert "retention_unknown" in {getattr(record, "action", "") for record in caplog.records}


async def test_a_retention_that_is_lowered_meanwhile_counts() -> None:
    scene = VirtualScene(after_retention=AfterRetention.OLDEST, tunnel_retention_hours=10)
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    sink = Poisoned(poison="k1")
    task = asyncio.create_task(scene.worker(sink, **CALM).run())
    await scene.put(["k1"])
    await asyncio.sleep(0.2 * HOUR)  # the worker has asked for the retention by now
    log = scene.emulator.instances["demo"].tables[TABLE].log
    assert log is not None
    log.retention_hours = 1
    await asyncio.sleep(0.85 * HOUR)
    await scene.put(["k2"])
    sink.poison = ""

    with pytest.raises(PossibleGap):
        await asyncio.wait_for(task, 1200)

    assert sink.written == []
