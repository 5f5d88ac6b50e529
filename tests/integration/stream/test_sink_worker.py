"""Workers that bring shards into a sink: splits and merges, several workers, what is lost, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ots_emulator.server.faults import FaultRule
from ots_tunnel.errors import (
    InvalidTransition,
    NoStream,
    ObjectNotExist,
    PossibleGap,
    ReadTimeout,
    SinkRejected,
    StreamReplaced,
    WrongLeaseTable,
)
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelStatus
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.sinks import Batch, Guard
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.holding.settings import LeaseSettings
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.lease import SHARD_END, Lease, Position, WorkerId
from ots_tunnel.stream.lease.row import ATTRIBUTES, KEY_NAMES, lease_key
from ots_tunnel.stream.shards import ShardId
from tests.support.emulator.emulator_scene import TABLE
from tests.support.emulator.follow_scene import KEYS, LEASES, FollowScene, following
from tests.support.emulator.stream_scene import quick_caller
from tests.support.sinks.sinks import RecordingSink, check_order
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

GOES_ON = FollowSettings(stops_at_gaps=False)


@pytest.fixture
async def scene() -> AsyncIterator[FollowScene]:
    async with following() as made:
        yield made


async def everything(scene: FollowScene, *sinks: RecordingSink) -> None:
    """Wait until all that was written to the table has come at least once."""
    await until(lambda: {row for sink in sinks for row in sink.written} >= set(scene.everything()), what="all rows")


async def test_one_worker_follows_a_table_through_splits_and_merges(scene: FollowScene) -> None:
    await scene.begin()
    sink = RecordingSink()
    await scene.put(KEYS, range(3))
    worker = scene.worker("w", sink)
    await everything(scene, sink)

    for step in range(3, 9):
        scene.emulator.merge("demo", TABLE) if step % 3 == 2 else scene.split()
        await scene.put(KEYS, [step])
        await asyncio.sleep(7)
    await everything(scene, sink)

    assert sink.written.count((KEYS[0], 0)) == 1
    assert len(sink.written) == len(scene.everything()), "nothing came twice"
    check_order(sink.written)
    leases = await scene.leases()
    parents = {parent for lease in leases.values() for parent in lease.parents}
    assert len(parents) >= 6
    await until(lambda: _finished(scene, parents), what="the parents are at their end")
    await until(lambda: _owned_by(scene, "w"), what="it has every lease")
    assert worker.status.hand_overs == 0, "no other worker has read a shard before"

    worker.drain()
    await scene.tasks["w"]
    assert {lease.owner for lease in (await scene.leases()).values()} == {""}
    assert sink.closed


async def _owned_by(scene: FollowScene, owner: str) -> bool:
    return {lease.owner for lease in (await scene.leases()).values()} == {owner}


async def _finished(scene: FollowScene, shards: set[ShardId]) -> bool:
    leases = await scene.leases()
    return all(leases[shard].checkpoint == SHARD_END for shard in shards)


async def test_what_its_beginning_waits_for_is_logged_and_shown_meanwhile(
    scene: FollowScene, caplog: pytest.LogCaptureFixture
) -> None:
    await scene.begin()
    scene.emulator.faults.add(FaultRule("ListStream", code="OTSServerBusy", message="too busy"))
    worker = scene.worker("w", RecordingSink())

    await until(lambda: worker.status.document()["error"] is not None, what="the error")
    assert asyncio.get_running_loop().time() < 2
    scene.emulator.faults.clear()
    await until(lambda: worker.status.is_ready, what="the stream is found")

    assert worker.status.error is None
    assert ("WARNING", LogAction.CALL_REPEATED) in {
        (line.levelname, getattr(line, "action", "")) for line in caplog.records
    }


async def test_children_of_a_shard_that_ends_start_at_once(scene: FollowScene) -> None:
    await scene.begin()
    sink = RecordingSink()
    await scene.put(KEYS)
    scene.split()
    await scene.put(KEYS, [2])

    scene.worker("w", sink)
    await everything(scene, sink)

    # All three leases were taken in the first round; no child has waited for a round of parents.
    assert asyncio.get_running_loop().time() < 3
    check_order(sink.written)


async def test_a_worker_that_starts_again_goes_on_where_it_was(scene: FollowScene) -> None:
    await scene.begin()
    sink = RecordingSink()
    await scene.put(KEYS)
    worker = scene.worker("w", sink)
    await everything(scene, sink)
    worker.drain()
    await scene.tasks["w"]
    await scene.put(KEYS, [2])

    scene.worker("w", sink)
    await everything(scene, sink)

    assert len(sink.written) == 2 * len(KEYS)


async def test_two_workers_share_and_the_one_that_stops_leaves_its_shards_without_a_repetition(
    scene: FollowScene,
) -> None:
    await scene.begin()
    sink = RecordingSink()
    for number in range(3):
        await scene.put(KEYS, [number])
        scene.split()
    first = scene.worker("first", sink)
    await until(lambda: len(first.status.channels) == 7)
    await everything(scene, sink)  # else the second one may get shards that nobody has read
    second = scene.worker("second", sink)
    await until(lambda: len(second.status.channels) >= 3, what="the second one has its share")
    await scene.put(KEYS, range(3, 5))
    await everything(scene, sink)
    # Which leases come is random: now and then only those of shards that have ended, which are not read again.
    held = second.status.channels
    await until(
        lambda: second.status.hand_overs == sum(not view.progress.finished for view in held.values()),
        what="each shard that it reads was read before",
    )

    second.drain()
    stopped = asyncio.get_running_loop().time()
    await scene.tasks["second"]
    await scene.put(KEYS, range(5, 8))
    await everything(scene, sink)

    assert asyncio.get_running_loop().time() - stopped < 15
    assert len(sink.written) == len(scene.everything()), "nothing came twice"
    check_order(sink.written)
    await until(lambda: len(first.status.channels) == 7)
    assert second.status.channels == {}


async def test_the_shards_of_a_killed_worker_are_read_when_its_leases_have_expired(scene: FollowScene) -> None:
    await scene.begin()
    sink, other = RecordingSink(), RecordingSink()
    await scene.put(KEYS)
    scene.split()
    scene.worker("killed", sink)
    await everything(scene, sink)
    survivor = scene.worker("survivor", other)
    await until(lambda: len(survivor.status.channels) >= 1)

    scene.tasks["killed"].cancel()
    killed = asyncio.get_running_loop().time()
    await scene.put(KEYS, range(2, 5))
    await everything(scene, sink, other)

    assert 10 < asyncio.get_running_loop().time() - killed < 40
    assert [number for key, number in other.written if key == KEYS[0]][-3:] == [2, 3, 4]


async def test_a_worker_that_has_lost_its_lease_writes_nothing_beside_the_next_owner(scene: FollowScene) -> None:
    await scene.begin()
    events: list[tuple[float, str]] = []

    class Slow(RecordingSink):
        async def write(self, batch: Batch, guard: Guard) -> None:
            try:
                while True:
                    guard.check()
                    events.append((asyncio.get_running_loop().time(), "old"))
                    await asyncio.sleep(0.5)
            finally:
                events.append((asyncio.get_running_loop().time(), "old ended"))

    class New(RecordingSink):
        async def write(self, batch: Batch, guard: Guard) -> None:
            events.append((asyncio.get_running_loop().time(), "new"))
            await super().write(batch, guard)

    await scene.put(KEYS)
    scene.worker("old", Slow())
    await until(lambda: events)

    async def silent(_: HttpRequest) -> HttpResponse:
        raise ReadTimeout("no complete answer in time")

    scene.answers["old"] = silent
    sink = New()
    scene.worker("new", sink)
    await everything(scene, sink)

    kinds = [kind for _, kind in events]
    first_new = kinds.index("new")
    assert "old" not in kinds[first_new:]
    last_old = max(at for at, kind in events if kind.startswith("old"))
    assert events[first_new][0] - last_old >= (20 - 6) / 3 - 0.5, "D lies between the two, and a look of the sink"


async def test_trimmed_records_stop_the_worker_and_the_next_one(scene: FollowScene) -> None:
    await scene.begin()
    await _reads_and_is_stopped(scene)
    scene.emulator.trim("demo", TABLE)
    await scene.put(KEYS, [9])
    before = await scene.leases()

    for name in ("w", "x"):
        sink = RecordingSink()
        scene.worker(name, sink)
        with pytest.raises(PossibleGap, match="may be missing") as caught:
            await scene.tasks[name]
        assert caught.value.channel_id in before
        assert sink.written == []
    after = await scene.leases()
    assert {lease.checkpoint for lease in after.values()} == {lease.checkpoint for lease in before.values()}
    assert {lease.owner for lease in after.values()} == {""}


async def test_behind_trimmed_records_a_worker_goes_on_where_the_settings_say_so(scene: FollowScene) -> None:
    await scene.begin()
    await _reads_and_is_stopped(scene)
    scene.emulator.trim("demo", TABLE)
    await scene.put(KEYS, [9])
    [shard] = await scene.leases()

    sink = RecordingSink()
    worker = scene.worker("w", sink, GOES_ON)
    await until(lambda: len(sink.written) == len(KEYS))

    assert {number for _, number in sink.written} == {9}
    [gap] = worker.status.document()["possibleGaps"]
    assert gap["channel"] == shard


async def _reads_and_is_stopped(scene: FollowScene) -> None:
    """Records are read, more are written, and are not read."""
    sink = RecordingSink()
    await scene.put(KEYS)
    worker = scene.worker("w", sink)
    await everything(scene, sink)
    worker.drain()
    await scene.tasks["w"]
    await scene.put(KEYS, [2])


async def unread_parent(scene: FollowScene) -> ShardId:
    """A shard that the stream has dropped, although it was not read to its end, and has children."""
    await _reads_and_is_stopped(scene)
    parent, *_ = scene.split()
    scene.clock.advance(25 * 3600)
    await scene.put(KEYS, [9])
    scene.emulator.trim("demo", TABLE)
    await scene.put(KEYS, [10])
    return ShardId(parent)


async def test_a_dropped_shard_that_was_not_read_stops_every_worker(scene: FollowScene) -> None:
    await scene.begin()
    parent = await unread_parent(scene)

    for name in ("w", "x"):
        sink = RecordingSink()
        scene.worker(name, sink)
        with pytest.raises(PossibleGap):
            await scene.tasks[name]
        assert sink.written == []
    assert parent in await scene.leases()


async def test_a_dropped_shard_that_was_not_read_is_told_and_its_children_start(scene: FollowScene) -> None:
    await scene.begin()
    parent = await unread_parent(scene)

    sink = RecordingSink()
    worker = scene.worker("w", sink, GOES_ON)
    await until(lambda: {(key, 10) for key in KEYS} <= set(sink.written))

    assert parent not in await scene.leases()
    assert parent in {gap["channel"] for gap in worker.status.document()["possibleGaps"]}


async def test_a_stream_that_is_off_is_an_error_that_says_so(scene: FollowScene) -> None:
    await scene.begin()
    await scene.switch_stream(on=False)

    scene.worker("w", RecordingSink())

    with pytest.raises(NoStream, match="has no stream"):
        await scene.tasks["w"]


@pytest.mark.parametrize("again", [True, False])
async def test_a_stream_that_is_switched_off_meanwhile_ends_the_worker(scene: FollowScene, again: bool) -> None:
    await scene.begin()
    sink = RecordingSink()
    await scene.put(KEYS)
    scene.worker("w", sink)
    await everything(scene, sink)

    await scene.switch_stream(on=False)
    if again:
        await scene.switch_stream(on=True)

    with pytest.raises(StreamReplaced if again else NoStream):
        await scene.tasks["w"]


@pytest.mark.parametrize("again", [True, False])
async def test_a_stream_that_is_off_and_still_described_ends_the_worker(scene: FollowScene, again: bool) -> None:
    """The service may keep what it has of a stream for a while; nothing more comes of it."""
    answers: dict[str, HttpResponse] = {}

    async def remembering(request: HttpRequest) -> HttpResponse:
        answer = await scene.emulator.handle(request)
        if answer.status == 200:
            answers[request.path] = answer
        return answers.get(request.path, answer) if request.path in ("/DescribeStream", "/GetStreamRecord") else answer

    await scene.begin()
    sink = RecordingSink()
    await scene.put(KEYS)
    scene.answers["w"] = remembering
    scene.worker("w", sink)
    await everything(scene, sink)
    await asyncio.sleep(60)

    await scene.switch_stream(on=False)
    if again:
        await scene.switch_stream(on=True)

    with pytest.raises(StreamReplaced if again else NoStream):
        await asyncio.wait_for(scene.tasks["w"], 300)
    if again:
        scene.answers["x"] = remembering
        scene.worker("x", RecordingSink())
        with pytest.raises(PossibleGap):
            await asyncio.wait_for(scene.tasks["x"], 300)


async def test_a_table_that_is_deleted_meanwhile_ends_the_worker(scene: FollowScene) -> None:
    await scene.begin()
    sink = RecordingSink()
    await scene.put(KEYS)
    scene.worker("w", sink)
    await everything(scene, sink)

    await scene.caller.call(TABLE_OPERATIONS["DeleteTable"], pb.DeleteTableRequest(table_name=TABLE))

    with pytest.raises(ObjectNotExist):
        await asyncio.wait_for(scene.tasks["w"], 300)


async def test_a_missing_table_is_an_error(scene: FollowScene) -> None:
    await scene.begin()
    scene.worker("w", RecordingSink(), table="missing")

    with pytest.raises(ObjectNotExist):
        await scene.tasks["w"]


async def test_a_table_of_leases_that_is_something_else_is_refused(scene: FollowScene) -> None:
    await scene.begin()
    scene.worker("w", RecordingSink(), leases=TABLE)

    with pytest.raises(WrongLeaseTable, match="primary key of lease table 'events'"):
        await scene.tasks["w"]


async def put_a_bad_row(scene: FollowScene, shard: str) -> None:
    """A row whose counter is a text."""
    row = encode_row(lease_key(scene.stream_id, ShardId(shard)), [Column(name, "x") for name in ATTRIBUTES])
    condition = pb.Condition(row_existence=pb.IGNORE)
    await scene.caller.call(
        TABLE_OPERATIONS["PutRow"], pb.PutRowRequest(table_name=LEASES, row=row, condition=condition)
    )


async def test_a_row_that_is_no_lease_is_an_error_at_the_start_and_is_left_out_later(scene: FollowScene) -> None:
    await scene.begin()
    sink = RecordingSink()
    await scene.put(KEYS)
    worker = scene.worker("w", sink)
    await everything(scene, sink)

    await put_a_bad_row(scene, "bad")
    await asyncio.sleep(60)
    await scene.put(KEYS, [2])
    await everything(scene, sink)
    worker.drain()
    await scene.tasks["w"]

    scene.worker("x", RecordingSink())
    with pytest.raises(WrongLeaseTable, match="table of leases 'leases': LeaseCounter of shard 'bad': found str"):
        await scene.tasks["x"]


@pytest.mark.parametrize("kind", ["CheckpointForDataxReader", "DataxJobDesc", "Other", "ZZ", "LeaseKey2"])
async def test_a_table_of_leases_with_rows_of_another_program_is_refused(scene: FollowScene, kind: str) -> None:
    await scene.begin()
    await create_lease_table(LeaseTable(scene.caller, LEASES))
    key = tuple(zip(KEY_NAMES, (scene.stream_id, kind, "0000000001700000000\tshard"), strict=True))
    row = encode_row(key, [Column("version", 1)])
    condition = pb.Condition(row_existence=pb.IGNORE)
    await scene.caller.call(
        TABLE_OPERATIONS["PutRow"], pb.PutRowRequest(table_name=LEASES, row=row, condition=condition)
    )
    scene.worker("w", RecordingSink())

    with pytest.raises(WrongLeaseTable, match=f"table of leases 'leases': found a row with StatusType '{kind}'"):
        await scene.tasks["w"]
    assert await scene.leases() == {}


async def test_a_checkpoint_that_is_no_iterator_is_an_error_that_names_the_lease(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS)
    table = LeaseTable(scene.caller, LEASES)
    await create_lease_table(table)
    [shard] = await scene.stream_client().shards(scene.stream_id)
    await table.create(Lease(scene.stream_id, shard.shard_id, checkpoint=Position("garbage")))
    worker = scene.worker("w", RecordingSink())
    [view] = [
        await until(lambda: next((each for each in worker.status.channels.values() if each.progress.error), None))
    ]

    assert f"Checkpoint of the lease of shard {shard.shard_id}: the service refuses it" in str(view.progress.error)
    assert "garbage" not in str(view.progress.error)


async def test_a_shard_whose_sink_fails_begins_again_and_the_others_go_on(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS)
    parent, *children = scene.split()
    bad = children[0]

    class Failing(RecordingSink):
        failures = 0
        broken = False

        async def write(self, batch: Batch, guard: Guard) -> None:
            if batch.channel_id == bad and self.broken:
                self.failures += 1
                raise RuntimeError("broken")
            await super().write(batch, guard)

    sink = Failing()
    worker = scene.worker("w", sink)
    await until(lambda: len(worker.status.channels) == 3)
    await everything(scene, sink)
    sink.broken = True
    await scene.put(KEYS, [2])
    await until(lambda: sink.failures >= 3, what="it was tried again")
    assert "broken" in str(next(c for c in worker.status.document()["channels"] if c["id"] == bad)["error"])
    assert sink.by_channel[children[1]]
    assert scene.tasks["w"].done() is False

    sink.broken = False
    await everything(scene, sink)
    check_order(sink.written)
    assert next(c for c in worker.status.document()["channels"] if c["id"] == bad)["error"] is None
    assert parent in worker.status.channels


async def test_records_that_are_refused_for_good_end_the_worker_in_good_order(scene: FollowScene) -> None:
    await scene.begin()
    sink = RecordingSink(error=SinkRejected("Bad", "row"))
    await scene.put(KEYS)
    worker = scene.worker("w", sink)

    with pytest.raises(SinkRejected):
        await scene.tasks["w"]

    assert {lease.owner for lease in (await scene.leases()).values()} == {""}
    assert worker.status.document()["error"] == "SinkRejected: Bad: row"
    assert sink.closed


async def test_the_status_shows_shards_as_channels(scene: FollowScene) -> None:
    await scene.begin()
    sink = RecordingSink()
    await scene.put(KEYS)
    parent, *children = scene.split()
    await scene.put(KEYS, [2])
    worker = scene.worker("w", sink)
    await everything(scene, sink)
    await until(lambda: worker.status.channels[parent].progress.finished)
    await asyncio.sleep(5)

    worker.status.wall = scene.clock.now
    document = worker.status.document()

    shown = {channel["id"]: channel for channel in document["channels"]}
    assert document["clientId"] == "w"
    assert document["state"] == "started"
    assert worker.status.is_ready
    assert shown[parent]["state"] == "TERMINATED"
    assert {shown[child]["state"] for child in children} == {"OPEN"}
    assert shown[children[0]]["caughtUp"] is True
    assert shown[children[0]]["lagSeconds"] < 10
    assert document["rowsTotal"] == 2 * len(KEYS)


async def test_reading_begins_at_a_time_and_every_later_worker_keeps_to_it(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS)
    await asyncio.sleep(10)
    start = int(scene.clock.now() * 1e6)
    await scene.put(KEYS, [2])

    sink = RecordingSink()
    worker = scene.worker("w", sink, FollowSettings(start_us=start))
    await until(lambda: len(sink.written) == len(KEYS))
    worker.drain()
    await scene.tasks["w"]
    scene.split()
    await scene.put(KEYS, [3])
    later = RecordingSink()
    scene.worker("x", later, FollowSettings(start_us=int(scene.clock.now() * 1e6) + 60_000_000))
    await until(lambda: len(later.written) == len(KEYS))

    assert {number for _, number in sink.written} == {2}
    assert {number for _, number in later.written} == {3}


async def test_a_drain_that_takes_too_long_is_cut_off(scene: FollowScene) -> None:
    await scene.begin()

    class Stuck(RecordingSink):
        async def end(self, channel_id: object, *, abandoned: bool) -> None:
            await asyncio.sleep(1000)

    sink = Stuck(gate=asyncio.Event())
    await scene.put(KEYS)
    worker = scene.worker("w", sink)
    await until(lambda: sink.writing)
    began = asyncio.get_running_loop().time()

    worker.interrupt()
    await asyncio.wait([scene.tasks["w"]], timeout=2000)

    assert worker.overdue
    assert asyncio.get_running_loop().time() - began < 60
    assert [lease.owner for lease in (await scene.leases()).values()] == ["w"]


async def test_a_second_interruption_closes_at_once(scene: FollowScene) -> None:
    await scene.begin()
    sink = RecordingSink(gate=asyncio.Event())
    await scene.put(KEYS)
    worker = scene.worker("w", sink)
    await until(lambda: sink.writing)

    worker.interrupt()
    worker.interrupt()
    async with asyncio.timeout(1):
        await scene.tasks["w"]

    assert sink.writing == 0
    assert [lease.owner for lease in (await scene.leases()).values()] == ["w"]
    with pytest.raises(InvalidTransition):
        await worker.run()


async def test_a_worker_stops_while_it_starts(scene: FollowScene) -> None:
    await scene.begin()

    async def silent(_: HttpRequest) -> HttpResponse:
        await asyncio.sleep(10_000)
        raise AssertionError("cancelled before")

    scene.answers["w"] = silent
    worker = scene.worker("w", RecordingSink())
    await asyncio.sleep(1)

    worker.drain()
    async with asyncio.timeout(1):
        await scene.tasks["w"]


async def test_a_calls_failure_at_the_start_is_repeated(scene: FollowScene) -> None:
    await scene.begin()
    failures = 0

    async def failing(request: HttpRequest) -> HttpResponse:
        nonlocal failures
        failures += 1
        if failures < 100:
            raise ReadTimeout("no complete answer in time")
        return await scene.emulator.handle(request)

    scene.answers["w"] = failing
    await scene.put(KEYS)
    sink = RecordingSink()
    scene.worker("w", sink)

    await everything(scene, sink)


async def test_a_lease_of_an_unknown_parent_is_confirmed_before_a_child_starts(scene: FollowScene) -> None:
    await scene.begin()
    sink = RecordingSink()
    await scene.put(KEYS)
    [shard] = await scene.stream_client().shards(scene.stream_id)
    table = LeaseTable(quick_caller(scene.emulator.handle), LEASES)
    await create_lease_table(table)
    await table.create(Lease(scene.stream_id, shard.shard_id, parents=frozenset({ShardId("gone")})))

    scene.worker("w", sink)
    await everything(scene, sink)


async def test_a_parent_that_another_worker_reads_is_waited_for(scene: FollowScene) -> None:
    await scene.begin()
    sink = RecordingSink()
    await scene.put(KEYS)
    parent, *children = scene.split()
    await scene.put(KEYS, [2])
    table = LeaseTable(quick_caller(scene.emulator.handle), LEASES)
    await create_lease_table(table)
    owned = Lease(scene.stream_id, ShardId(parent), owner=WorkerId("other"), checkpoint=Position("i"))
    await table.create(owned)
    worker = scene.worker("w", sink)
    await until(lambda: len(worker.status.channels) == 2)
    await asyncio.sleep(10)
    assert sink.written == []
    assert {worker.status.channels[child].status for child in children} == {ChannelStatus.WAIT}

    assert await table.apply(change.store(owned, SHARD_END)) is not None
    await until(lambda: len(sink.written) == len(KEYS))

    assert {number for _, number in sink.written} == {2}


async def test_a_lease_that_comes_back_is_not_worked_on_while_an_old_write_may_take_effect(scene: FollowScene) -> None:
    await scene.begin()
    loop = asyncio.get_running_loop()
    times: list[float] = []

    class Hanging(RecordingSink):
        async def write(self, batch: Batch, guard: Guard) -> None:
            times.append(loop.time())
            if len(times) == 1:
                try:
                    await asyncio.sleep(1000)
                finally:
                    times.append(loop.time())
            await super().write(batch, guard)

    async def silent(_: HttpRequest) -> HttpResponse:
        raise ReadTimeout("no complete answer in time")

    sink = Hanging()
    await scene.put(KEYS)
    worker = scene.worker("w", sink, FollowSettings(LeaseSettings(take_interval=0.5)))
    await until(lambda: times)
    scene.answers["w"] = silent
    await until(lambda: len(times) == 2, what="the lease is lost, and the write is given up")
    del scene.answers["w"]
    await everything(scene, sink)

    assert worker.status.channels
    assert times[2] - times[1] >= (20 - 6) / 3, "D, in which the write that was given up may take effect"


async def test_a_checkpoint_without_an_answer_is_known_when_the_shard_is_opened_again(scene: FollowScene) -> None:
    """The sink fails while a checkpoint is under way: the replay begins where the stored one says."""
    await scene.begin()
    sink = RecordingSink()
    stored = asyncio.Event()

    async def without_answer(request: HttpRequest) -> HttpResponse:
        answer = await scene.emulator.handle(request)
        if request.path == "/UpdateRow" and b"Checkpoint" in request.body:
            stored.set()
            sink.error = RuntimeError("broken")
            del scene.answers["w"]
            raise ReadTimeout("no complete answer in time")
        return answer

    await scene.put(KEYS)
    scene.answers["w"] = without_answer
    scene.worker("w", sink)
    await until(stored.is_set)
    await scene.put(KEYS, [2])
    await asyncio.sleep(5)
    sink.error = None
    await everything(scene, sink)

    assert len(sink.written) == 2 * len(KEYS), "nothing came twice"
