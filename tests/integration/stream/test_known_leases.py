"""What only an earlier list of leases tells: that a shard was read whose lease says otherwise, that a lease is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.errors import LeaseTableNotFound, PossibleGap
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.holding.known_leases import REMEMBERED_SECONDS, KnownLeases
from ots_tunnel.stream.holding.syncing import sync_shards
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.lease import SHARD_END, TRIM_HORIZON, Lease, WorkerId
from ots_tunnel.stream.lease.row import lease_key
from ots_tunnel.stream.shards import ShardId
from tests.support.emulator.follow_scene import KEYS, LEASES, FollowScene, following
from tests.support.emulator.stream_scene import quick_caller
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

DAY = 24 * 3600


@pytest.fixture
async def scene() -> AsyncIterator[FollowScene]:
    async with following() as made:
        yield made


class Slow(RecordingSink):
    """Stores nothing before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()

    async def write(self, batch: Any, guard: Any) -> None:
        await self.may.wait()
        await super().write(batch, guard)


class Busy:
    """Answers that the service has no time for ListStream, while it is told to."""

    def __init__(self, scene: FollowScene, worker: str) -> None:
        self.scene = scene
        self.is_busy = False
        scene.answers[worker] = self.handle

    async def handle(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/ListStream" and self.is_busy:
            return HttpResponse(503, {}, b"busy")
        return await self.scene.emulator.handle(request)


def table_of(scene: FollowScene) -> LeaseTable:
    return LeaseTable(quick_caller(scene.emulator.handle), LEASES)


async def listed(scene: FollowScene) -> set[ShardId]:
    return {shard.shard_id for shard in await scene.stream_client().shards(scene.stream_id)}


async def read_across_a_split(scene: FollowScene, sink: RecordingSink) -> ShardId:
    """A worker reads a shard to its end, and what its children bring; the shard."""
    await scene.begin()
    await scene.put(KEYS, [1])
    scene.worker("w", sink)
    await until(lambda: len(sink.written) == len(KEYS))
    [parent] = await scene.leases()
    scene.split()
    await scene.put(KEYS, [2])
    await until(lambda: len(sink.written) == 2 * len(KEYS))
    return parent


async def test_a_finished_shard_whose_lease_the_library_writes_anew_is_not_read_again(
    scene: FollowScene, caplog: pytest.LogCaptureFixture
) -> None:
    """Its old values would come behind those of its children, for good."""
    sink = RecordingSink()
    parent = await read_across_a_split(scene, sink)
    await scene.write_lease_anew(parent)

    async def is_finished() -> bool:
        return (await scene.leases())[parent].is_finished

    await until(is_finished)

    assert len(sink.written) == 2 * len(KEYS)
    assert [record.channel_id for record in caplog.records if record.action == LogAction.LEASE_WRITTEN_ANEW] == [parent]


@pytest.mark.parametrize("pause", [0.0, 30.0])
async def test_a_dropped_shard_whose_lease_the_library_writes_anew_is_no_gap(scene: FollowScene, pause: float) -> None:
    """The library has listed the shards before the stream dropped it, and writes after our worker's deletion."""
    parent = await read_across_a_split(scene, RecordingSink())
    scene.clock.advance(DAY + 60)

    async def is_gone() -> bool:
        return parent not in await scene.leases()

    await until(is_gone)
    await asyncio.sleep(pause)
    await scene.write_lease_anew(parent)

    await until(is_gone)
    assert not scene.tasks["w"].done()


async def test_shards_that_come_while_a_description_is_under_way_have_not_vanished(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS, [1])
    sink, slow, asked = RecordingSink(), asyncio.Event(), asyncio.Event()

    async def handle(request: HttpRequest) -> HttpResponse:
        answer = await scene.emulator.handle(request)
        if request.path == "/DescribeStream" and slow.is_set():
            slow.clear()
            asked.set()
            await asyncio.sleep(8)
        return answer

    scene.answers["b"] = handle
    scene.worker("a", sink)
    scene.worker("b", sink)
    await until(lambda: len(sink.written) >= len(KEYS))
    await asyncio.sleep(30)
    slow.set()
    await asyncio.wait_for(asked.wait(), 30)
    scene.split()
    await sync_shards(scene.stream_client(), table_of(scene), scene.stream_id)
    await asyncio.sleep(40)

    assert not scene.tasks["b"].done()


def test_a_shard_that_was_read_and_dropped_has_not_vanished_where_its_lease_was_written_anew() -> None:
    known = KnownLeases(lambda: 0.0)
    known.look((Lease("s", ShardId("a"), 9, checkpoint=SHARD_END),))
    known.look(())
    known.look((Lease("s", ShardId("a"), created_ms=7),))
    known.look(())

    assert known.vanished(frozenset()) == ()


async def test_leases_of_another_table_of_the_same_name_are_not_ended_by_what_was_known_of_the_former(
    scene: FollowScene,
) -> None:
    """It was deleted to read everything again, and the worker that ran has not noticed yet."""
    await scene.begin()
    await scene.put(KEYS, [1])
    sink = RecordingSink()
    scene.worker("w", sink, FollowSettings(sync_interval=30))
    await until(lambda: len(sink.written) == len(KEYS))
    [parent] = await scene.leases()
    scene.split()
    await scene.put(KEYS, [2])
    await until(lambda: len(sink.written) == 2 * len(KEYS))
    await scene.caller.call(TABLE_OPERATIONS["DeleteTable"], pb.DeleteTableRequest(table_name=LEASES))
    await create_lease_table(table_of(scene))
    await sync_shards(scene.stream_client(), table_of(scene), scene.stream_id)

    with pytest.raises(LeaseTableNotFound):
        await asyncio.wait_for(scene.tasks["w"], 100)
    assert not (await scene.leases())[parent].is_finished


async def test_a_shard_that_was_read_just_in_time_is_no_gap(scene: FollowScene) -> None:
    """The worker that has read it could not look at the stream until the shard was dropped and its lease deleted."""
    await scene.begin()
    await scene.put(KEYS, [1])
    scene.split()
    sinks = {"a": Slow(), "b": Slow()}
    busy = {name: Busy(scene, name) for name in sinks}
    for name, sink in sinks.items():
        scene.worker(name, sink)
    for _ in range(23):
        scene.clock.advance(3600)
        await asyncio.sleep(30)
    scene.clock.advance(2400)
    await asyncio.sleep(60)
    [parent] = [lease for lease in (await scene.leases()).values() if not lease.parents]
    assert parent.checkpoint not in (TRIM_HORIZON, SHARD_END)
    busy[str(parent.owner)].is_busy = True
    for sink in sinks.values():
        sink.may.set()  # the destination takes the backlog just in time

    async def is_gone() -> bool:
        return parent.shard_id not in await listed(scene) and parent.shard_id not in await scene.leases()

    await until(is_gone)
    busy[str(parent.owner)].is_busy = False
    await asyncio.sleep(100)

    assert sum(len(sink.written) for sink in sinks.values()) == len(scene.everything())
    assert not scene.tasks[str(parent.owner)].done()


@pytest.mark.parametrize(("interval", "is_busy"), [(10.0, False), (10.0, True), (700.0, False)])
async def test_the_library_deletes_an_unread_lease_between_rare_looks_at_the_shards(
    scene: FollowScene, interval: float, is_busy: bool
) -> None:
    await scene.begin()
    await scene.put(KEYS, [0])
    sink = RecordingSink()
    first = scene.worker("first", sink)
    await until(lambda: len(sink.written) == len(KEYS))
    first.drain()
    await scene.tasks["first"]
    [(shard, lease)] = (await scene.leases()).items()
    held = await table_of(scene).apply(change.take(lease, WorkerId("java")))
    await scene.put(KEYS, [1])
    scene.split()
    busy = Busy(scene, "w")
    scene.worker("w", sink, FollowSettings(sync_interval=interval))

    async def renewed(seconds: float) -> None:
        nonlocal held
        for _ in range(int(seconds / 5)):
            await asyncio.sleep(5)
            assert held is not None
            held = await table_of(scene).apply(change.renew(held))

    await renewed(20)
    scene.clock.advance(DAY - 1000)
    await renewed(900)
    busy.is_busy = is_busy
    while shard in await listed(scene):
        await renewed(5)
    key = encode_row(lease_key(scene.stream_id, shard), delete=True)
    request = pb.DeleteRowRequest(table_name=LEASES, primary_key=key, condition=pb.Condition(row_existence=pb.IGNORE))
    await table_of(scene).remove(request)

    with pytest.raises(PossibleGap):
        await asyncio.wait_for(scene.tasks["w"], 2 * interval + 60)


async def test_children_are_read_while_nobody_tells_whether_the_stream_is_the_tables(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS, [0])
    sink, busy = RecordingSink(), Busy(scene, "w")
    scene.worker("w", sink)
    await until(lambda: len(sink.written) == len(KEYS))
    busy.is_busy = True
    scene.split()
    await scene.put(KEYS, [1])

    await until(lambda: len(sink.written) == 2 * len(KEYS), 300)


def test_a_deleted_lease_of_a_shard_that_was_read_is_evidence_unless_the_stream_lists_it() -> None:
    now = 0.0
    known = KnownLeases(lambda: now)
    read, anew = Lease("s", ShardId("a"), 9, checkpoint=SHARD_END), Lease("s", ShardId("a"), created_ms=7)
    assert not known.was_read(anew)
    known.look((read,))
    assert known.was_read(anew)
    known.look(())
    known.look((anew,))
    assert known.was_read(anew)
    assert not known.is_read(anew)

    known.look_at_stream({ShardId("b")})
    assert known.was_read(anew)
    known.look_at_stream({ShardId("a")})  # the row was deleted, to read the shard again
    assert not known.was_read(anew)

    known.look((read,))
    known.look(())
    now = REMEMBERED_SECONDS + 1
    known.look((anew,))
    assert not known.was_read(anew)


async def test_a_memory_tells_what_was_seen_within_its_time() -> None:
    now = 0.0
    known = KnownLeases(lambda: now)
    unread, read = Lease("s", ShardId("a"), 5), Lease("s", ShardId("b"), 9, checkpoint=SHARD_END)
    known.look((unread, read))
    assert known.vanished(set()) == (unread,)
    assert known.vanished({ShardId("a")}) == ()
    anew, set_back = Lease("s", ShardId("b"), 12, created_ms=7), Lease("s", ShardId("b"), 9)
    anew_on_purpose = replace(anew, created_if_missing=True)

    known.look((unread, anew))
    assert known.is_read(anew)
    assert known.is_read(replace(set_back, counter=8))  # a late list tells of the time before
    assert not known.is_read(set_back)
    assert not known.is_read(anew_on_purpose)
    known.look((unread, set_back))
    assert not known.is_read(anew)
    known.look((unread, read))
    known.look((unread,))
    known.look((unread, anew))
    assert not known.is_read(anew)  # its row was deleted, to read the shard again
    known.look((unread, read))
    known.look((unread, anew_on_purpose))
    assert not known.is_read(anew)

    now = REMEMBERED_SECONDS + 1
    known.look(())
    assert known.vanished(set()) == ()
