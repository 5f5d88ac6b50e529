"""Records that the stream drops before their first page was read: each way there is reported, and none passed over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest

from ots_tunnel.errors import PossibleGap, ReadTimeout
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.sinks import Batch, Guard
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.calls.start_mark import Start, set_start
from ots_tunnel.stream.following.gaps import ShardGaps
from ots_tunnel.stream.following.reader import ShardReader
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.holding import syncing
from ots_tunnel.stream.holding.syncing import AtStart, sync_shards
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.lease import SHARD_END, TRIM_HORIZON, Lease, Position, WorkerId
from ots_tunnel.stream.lease.row import lease_key
from ots_tunnel.stream.shards import ShardId, StreamShards
from tests.support.emulator.emulator_scene import TABLE
from tests.support.emulator.follow_scene import KEYS, LEASES, FollowScene, following
from tests.support.emulator.stream_scene import quick_caller
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

#: More hours than the stream of the scene keeps its records.
HOURS = 25


@pytest.fixture
async def scene() -> AsyncIterator[FollowScene]:
    async with following() as made:
        yield made


class Processor:
    """Cannot begin while its database is down."""

    def __init__(self) -> None:
        self.is_down, self.failures = True, 0

    async def create_processor(self) -> Processor:
        return self

    async def initialize(self, given: Any) -> None:
        if self.is_down:
            self.failures += 1
            raise ConnectionError("the database is down")

    async def process_records(self, given: Any) -> None:
        pass

    async def shutdown(self, given: Any) -> None:
        pass


async def begun(scene: FollowScene, sink: RecordingSink) -> tuple[LeaseTable, ShardId]:
    """The only shard, read by a worker that has left."""
    await scene.begin()
    await scene.put(KEYS, [0])
    first = scene.worker("first", sink)
    await until(lambda: len(sink.written) == len(KEYS))
    first.drain()
    await scene.tasks["first"]
    [shard] = await scene.leases()
    return LeaseTable(quick_caller(scene.emulator.handle), LEASES), shard


async def leave_unread(scene: FollowScene) -> None:
    """A shard with records, and a lease whose worker has ended before its first page."""
    await scene.begin()
    await scene.put(KEYS, [1])
    mine = Processor()
    worker = scene.processors("w", mine)
    await until(lambda: mine.failures >= 1)
    worker.shutdown()
    await scene.tasks["w"]


class Describing:
    """A client whose description of a stream is preceded or followed by something else."""

    def __init__(
        self,
        client: StreamClient,
        before: Callable[[], Awaitable[object]] | None = None,
        after: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._client, self._before, self._after = client, before, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def describe(self, stream_id: str) -> StreamShards:
        if self._before is not None:
            await self._before()
        found = await self._client.describe(stream_id)
        if self._after is not None:
            await self._after()
        return found


def as_client(describing: Describing) -> StreamClient:
    return cast("StreamClient", describing)


async def gap_of(task: asyncio.Task[Any]) -> PossibleGap:
    """The gap with which a worker ends."""
    with pytest.raises(PossibleGap) as caught:
        await asyncio.wait_for(task, 200)
    return caught.value


async def test_a_processor_that_cannot_begin_for_longer_than_the_retention(scene: FollowScene) -> None:
    await scene.begin()
    began = scene.clock.now()
    await scene.put(KEYS, [1])
    mine = Processor()
    scene.processors("w", mine)
    await until(lambda: mine.failures >= 1)

    for _ in range(HOURS):
        scene.clock.advance(3600)
        await asyncio.sleep(61)
    mine.is_down = False

    gap = await gap_of(scene.tasks["w"])
    assert gap.start == pytest.approx(began, abs=60)
    assert began < gap.end <= scene.clock.now() - (HOURS - 2) * 3600


async def test_a_worker_that_ended_before_its_first_page(scene: FollowScene) -> None:
    await leave_unread(scene)
    assert [lease.checkpoint for lease in (await scene.leases()).values()] == [TRIM_HORIZON]

    scene.clock.advance(HOURS * 3600)
    await scene.put(KEYS, [2])
    sink = RecordingSink()
    scene.worker("x", sink)
    await gap_of(scene.tasks["x"])
    assert sink.written == []

    # accepted, it is told once
    behind = scene.worker("y", sink, FollowSettings(stops_at_gaps=False))
    await until(lambda: len(sink.written) == len(KEYS))
    assert len(behind.status.possible_gaps) == 1
    behind.drain()
    await scene.tasks["y"]
    later = scene.worker("z", sink)
    await scene.put(KEYS, [3])
    await until(lambda: len(sink.written) == 2 * len(KEYS))
    assert later.status.possible_gaps == {}


async def test_a_description_that_fails_at_the_first_page_hides_nothing(scene: FollowScene) -> None:
    await leave_unread(scene)
    [lease] = (await scene.leases()).values()
    scene.clock.advance(HOURS * 3600)
    failures = [ReadTimeout("no answer")]

    async def fail_once() -> None:
        if failures:
            raise failures.pop()

    client = scene.stream_client()
    stream = await client.stream_of(TABLE)
    found: list[Gap] = []
    gaps = ShardGaps(stops=False, on_gap=lambda shard, gap: found.append(gap))
    reader = ShardReader(as_client(Describing(client, before=fail_once)), stream, lease, gaps, wall=scene.clock.now)
    with pytest.raises(ReadTimeout):
        await reader.read(TRIM_HORIZON)
    assert found == []

    await reader.read(TRIM_HORIZON)
    await reader.read(TRIM_HORIZON)

    assert len(found) == 1


async def test_a_worker_that_begins_within_the_retention_has_missed_nothing(scene: FollowScene) -> None:
    await leave_unread(scene)

    scene.clock.advance(23 * 3600)
    sink = RecordingSink()
    again = scene.worker("x", sink)
    await until(lambda: len(sink.written) == len(KEYS))
    assert again.status.possible_gaps == {}


async def split_by_java(scene: FollowScene, table: LeaseTable, shard: ShardId) -> None:
    """The library reads a parent to its end, and makes the leases of its children as it does, at TRIM_HORIZON."""
    scene.split()
    taken = await table.apply(change.take((await scene.leases())[shard], WorkerId("java")))
    assert taken is not None
    await table.apply(change.store(taken, SHARD_END))
    for found in await scene.stream_client().shards(scene.stream_id):
        if found.shard_id != shard:
            await table.create(Lease(scene.stream_id, found.shard_id, parents=found.parents))


async def test_leases_of_children_that_the_library_has_made(scene: FollowScene) -> None:
    sink = RecordingSink()
    table, shard = await begun(scene, sink)
    await split_by_java(scene, table, shard)
    await scene.put(KEYS, [1])
    scene.clock.advance(HOURS * 3600)
    await scene.put(KEYS, [2])

    scene.worker("py", sink)

    await gap_of(scene.tasks["py"])
    assert {number for _, number in sink.written} == {0}


async def test_the_library_deletes_the_lease_of_a_shard_that_nobody_has_read(scene: FollowScene) -> None:
    """One of its workers holds the lease, renews it, and reads the shard no more."""
    sink = RecordingSink()
    table, shard = await begun(scene, sink)
    held = await table.apply(change.take((await scene.leases())[shard], WorkerId("java")))
    await scene.put(KEYS, [1])
    scene.split()
    scene.worker("py", sink)
    while shard in {found.shard_id for found in await scene.stream_client().shards(scene.stream_id)}:
        for _ in range(3):
            await asyncio.sleep(5)
            assert held is not None
            held = await table.apply(change.renew(held))
        scene.clock.advance(500)

    row = encode_row(lease_key(scene.stream_id, shard), delete=True)
    anyhow = pb.Condition(row_existence=pb.IGNORE)
    await table.call("DeleteRow", pb.DeleteRowRequest(table_name=LEASES, primary_key=row, condition=anyhow))

    assert (await gap_of(scene.tasks["py"])).channel_id == shard


async def test_a_worker_that_could_not_look_for_long_knows_nothing_of_leases_that_are_gone(scene: FollowScene) -> None:
    """The other one has read the shard to its end meanwhile, and has deleted its lease."""
    sink = RecordingSink()
    await scene.begin()
    await scene.put(KEYS, [0])
    scene.worker("a", sink)
    scene.worker("b", sink)
    await until(lambda: len(sink.written) == len(KEYS))
    await asyncio.sleep(30)
    [shard] = await scene.leases()
    cut = asyncio.Event()

    async def silent(request: HttpRequest) -> HttpResponse:
        if request.path == "/DescribeStream":
            await cut.wait()
        return await scene.emulator.handle(request)

    scene.answers["b"] = silent
    await asyncio.sleep(20)
    scene.split()
    await scene.put(KEYS, [1])
    for _ in range(HOURS + 1):
        scene.clock.advance(3600)
        await asyncio.sleep(70)
    await until_gone(scene, shard)
    cut.set()
    await asyncio.sleep(60)

    assert not scene.tasks["b"].done()


async def until_gone(scene: FollowScene, shard: ShardId) -> None:
    """Wait until the lease of a shard is deleted."""
    for _ in range(100):
        if shard not in await scene.leases():
            return
        await asyncio.sleep(5)
    raise AssertionError(f"the lease of {shard} is still there")


async def test_a_start_before_what_the_stream_keeps(scene: FollowScene) -> None:
    await scene.begin()
    start = scene.clock.now()
    await scene.put(KEYS, [1])
    scene.clock.advance(HOURS * 3600)
    await scene.put(KEYS, [2])
    sink = RecordingSink()

    for name in ("x", "y"):
        scene.worker(name, sink, FollowSettings(start_us=int(start * 1e6)))
        gap = await gap_of(scene.tasks[name])
        assert gap.start == pytest.approx(start, abs=2)
        assert sink.written == []
    assert await scene.leases() == {}, "a later start may still be named"

    scene.worker("z", sink, FollowSettings(start_us=int(scene.clock.now() * 1e6) - 3600_000_000))
    await until(lambda: len(sink.written) == len(KEYS))
    assert {number for _, number in sink.written} == {2}


class Hanging(RecordingSink):
    """Never stores a batch."""

    async def write(self, batch: Batch, guard: Guard) -> None:
        await asyncio.Event().wait()


async def test_a_shard_that_is_lost_behind_such_a_start_is_reported_as_well(scene: FollowScene) -> None:
    await scene.begin()
    start = scene.clock.now()
    await scene.put(KEYS, [1])
    scene.clock.advance(HOURS * 3600)
    await scene.put(KEYS, [2])
    worker = scene.worker("x", Hanging(), FollowSettings(start_us=int(start * 1e6), stops_at_gaps=False))
    await until(lambda: worker.status.possible_gaps)
    [(shard, told)] = worker.status.possible_gaps.items()

    scene.split()
    while shard in {found.shard_id for found in await scene.stream_client().shards(scene.stream_id)}:
        scene.clock.advance(3600)
        await asyncio.sleep(15)
    await asyncio.sleep(30)

    assert worker.status.possible_gaps[shard] != told


async def test_a_start_that_an_earlier_worker_has_named_before_what_the_stream_keeps(scene: FollowScene) -> None:
    """It has ended before the first lease, with `Latest`; so has this one a start that would leave nothing out."""
    table = LeaseTable(quick_caller(scene.emulator.handle), LEASES)
    await scene.begin()
    await create_lease_table(table)
    await set_start(table, scene.stream_id, int(scene.clock.now() * 1e6))
    scene.clock.advance(10)
    await scene.put(KEYS, [1])
    scene.clock.advance(HOURS * 3600)
    await scene.put(KEYS, [2])
    scene.worker("w", RecordingSink(), FollowSettings(start_us=int(scene.clock.now() * 1e6), starts_anew=True))

    with pytest.raises(PossibleGap):
        await asyncio.wait_for(scene.tasks["w"], 200)


async def test_a_start_that_is_dropped_is_no_gap_where_another_one_counts(scene: FollowScene) -> None:
    """An earlier worker has named one that the stream keeps, and has ended before the first lease."""
    table = LeaseTable(quick_caller(scene.emulator.handle), LEASES)
    await scene.begin()
    scene.clock.advance(3 * HOURS * 3600)
    await scene.put(KEYS, [1])
    await create_lease_table(table)
    now = scene.clock.now()
    await set_start(table, scene.stream_id, int((now - 600) * 1e6))
    sink = RecordingSink()
    scene.worker("w", sink, FollowSettings(start_us=int((now - 2 * HOURS * 3600) * 1e6)))

    await until(lambda: len(sink.written) == len(KEYS) or scene.tasks["w"].done())
    assert not scene.tasks["w"].done()


async def test_a_start_that_was_cut_off_behind_the_first_lease(scene: FollowScene) -> None:
    """What the second shard had after it is dropped when the next worker comes."""
    await scene.begin()
    await scene.put(KEYS, [0])
    scene.split()
    scene.clock.advance(HOURS * 3600)
    client, table = scene.stream_client(), LeaseTable(quick_caller(scene.emulator.handle), LEASES)
    start = int(scene.clock.now() * 1e6)
    scene.clock.advance(60)
    await scene.put(["k00"], [1])
    scene.clock.advance(20 * 3600)
    await create_lease_table(table)
    await set_start(table, scene.stream_id, start)
    for shard in await client.shards(scene.stream_id):
        if not (await client.read(await client.iterator(scene.stream_id, shard.shard_id))).records:
            at = await client.iterator(scene.stream_id, shard.shard_id, timestamp_us=start)
            await table.create(Lease(scene.stream_id, shard.shard_id, checkpoint=Position(at)))
    assert len(await scene.leases()) == 1
    scene.clock.advance(10 * 3600)
    await scene.put(["k00"], [2])
    scene.worker("w", RecordingSink(), FollowSettings(start_us=start))

    with pytest.raises(PossibleGap):
        await asyncio.wait_for(scene.tasks["w"], 200)


async def test_the_first_of_two_starts_holds_though_it_is_over_when_the_second_is_written(scene: FollowScene) -> None:
    await scene.begin()
    table = LeaseTable(quick_caller(scene.emulator.handle), LEASES)
    await create_lease_table(table)
    await scene.put(KEYS, [0])
    scene.clock.advance(10)
    client = scene.stream_client()
    first_start = int(scene.clock.now() * 1e6)
    scene.clock.advance(1)
    described, second_has_listed = asyncio.Event(), asyncio.Event()

    async def waits(start_us: int) -> None:
        described.set()
        await second_has_listed.wait()

    first = asyncio.ensure_future(
        sync_shards(client, table, scene.stream_id, start_us=first_start, at_start=AtStart(waits))
    )
    await described.wait()
    scene.split()
    await scene.put(KEYS, [1])
    scene.clock.advance(5)

    async def let_the_first_end() -> None:
        second_has_listed.set()
        await first

    second = as_client(Describing(client, before=let_the_first_end))
    await sync_shards(second, table, scene.stream_id, start_us=int(scene.clock.now() * 1e6))

    sink = RecordingSink()
    scene.worker("w", sink)
    await asyncio.sleep(60)
    assert sorted(sink.written) == sorted((key, 1) for key in KEYS)


async def test_a_slower_start_behind_deleted_leases_takes_no_faster_one_away(
    scene: FollowScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leases were deleted by hand; the row of their start is there."""
    await scene.begin()
    tables = [LeaseTable(quick_caller(scene.emulator.handle), LEASES) for _ in range(2)]
    await create_lease_table(tables[0])
    client = scene.stream_client()
    await scene.put(KEYS, [0])
    await sync_shards(client, tables[0], scene.stream_id, start_us=int(scene.clock.now() * 1e6))
    for lease in (await scene.leases()).values():
        await tables[0].delete(lease)
    scene.clock.advance(10)
    described, go = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        described.set()
        await go.wait()

    slow = as_client(Describing(client, after=wait))
    faster = sync_shards(slow, tables[0], scene.stream_id, start_us=int(scene.clock.now() * 1e6))
    first = asyncio.ensure_future(faster)
    await described.wait()
    scene.clock.advance(1)
    scene.split()
    await scene.put(KEYS, [1])
    scene.clock.advance(5)
    forget = syncing.forget_start

    async def late(table: LeaseTable, stream_id: str, start: Start) -> None:
        if table is tables[1]:
            go.set()
            await first
        await forget(table, stream_id, start)

    monkeypatch.setattr(syncing, "forget_start", late)
    await sync_shards(client, tables[1], scene.stream_id, start_us=int(scene.clock.now() * 1e6))

    sink = RecordingSink()
    scene.worker("w", sink)
    await asyncio.sleep(60)
    assert sorted(sink.written) == sorted((key, 1) for key in KEYS)
