"""Changes that no worker has read and that nothing of the leases tells of: a former stream, shards without a lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ots_tunnel.errors import PossibleGap
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.holding.syncing import sync_shards
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.lease import SHARD_END, Lease, WorkerId
from ots_tunnel.stream.shards import ShardId
from tests.support.emulator.emulator_scene import TABLE, create_table_request
from tests.support.emulator.follow_scene import KEYS, LEASES, FollowScene, following
from tests.support.emulator.stream_scene import quick_caller
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

GOES_ON = FollowSettings(stops_at_gaps=False)


@pytest.fixture
async def scene() -> AsyncIterator[FollowScene]:
    async with following() as made:
        yield made


def lease_table(scene: FollowScene) -> LeaseTable:
    return LeaseTable(quick_caller(scene.emulator.handle), LEASES)


async def follow_for_a_while(scene: FollowScene) -> None:
    """A worker reads everything there is, and stops."""
    await scene.put(KEYS)
    sink = RecordingSink()
    worker = scene.worker("first", sink)
    await until(lambda: set(sink.written) >= set(scene.everything()), what="all rows")
    worker.drain()
    await scene.tasks["first"]


async def replace_stream(scene: FollowScene) -> None:
    """The stream is switched off and on again, and changes are written before, meanwhile and afterwards."""
    await scene.put(KEYS, [1])
    await scene.switch_stream(on=False)
    await scene.put(KEYS, [2])
    scene.clock.advance(60)
    await scene.switch_stream(on=True)
    await scene.put(KEYS, [9])
    scene.stream_id = (await scene.stream_client().stream_of(TABLE)).stream_id


async def check_that_workers_stop(scene: FollowScene) -> None:
    for name in ("w", "x"):
        sink = RecordingSink()
        scene.worker(name, sink)
        with pytest.raises(PossibleGap, match="may be missing"):
            await scene.tasks[name]
        assert sink.written == []


async def test_a_stream_that_was_replaced_while_no_worker_ran_stops_every_worker(scene: FollowScene) -> None:
    await scene.begin()
    began = scene.clock.now()
    await follow_for_a_while(scene)
    await replace_stream(scene)

    await check_that_workers_stop(scene)

    assert await scene.leases() == {}, "nothing of the new stream passes for read"
    [shard] = await scene.stream_client().shards(scene.stream_id)
    scene.worker("y", RecordingSink())
    with pytest.raises(PossibleGap) as caught:
        await scene.tasks["y"]
    stream = await scene.stream_client().stream_of(TABLE)
    assert caught.value.channel_id == shard.shard_id
    assert began - 1 <= caught.value.start <= began + 60
    assert caught.value.end == stream.created_us / 1e6


async def test_behind_a_stream_that_was_replaced_a_worker_goes_on_where_the_settings_say_so(scene: FollowScene) -> None:
    await scene.begin()
    await follow_for_a_while(scene)
    await replace_stream(scene)

    sink = RecordingSink()
    worker = scene.worker("w", sink, GOES_ON)
    await until(lambda: len(sink.written) == len(KEYS))

    assert {number for _, number in sink.written} == {9}
    assert [gap["channel"] for gap in worker.status.document()["possibleGaps"]] == list(await scene.leases())
    assert {gap["passed"] for gap in worker.status.document()["possibleGaps"]} == {True}
    worker.drain()
    await scene.tasks["w"]
    again = scene.worker("again", RecordingSink())
    await until(lambda: again.status.channels)
    assert again.status.document()["possibleGaps"] == [], "it was told once"


async def test_leases_of_the_new_stream_that_another_program_has_made_hide_nothing(scene: FollowScene) -> None:
    """A worker of the Java library may start first, and tells nobody."""
    await scene.begin()
    await follow_for_a_while(scene)
    await replace_stream(scene)
    for shard in await scene.stream_client().shards(scene.stream_id):
        await lease_table(scene).create(Lease(scene.stream_id, shard.shard_id, owner=WorkerId("java")))

    await check_that_workers_stop(scene)


async def test_a_former_stream_of_the_library_alone_that_is_still_described(scene: FollowScene) -> None:
    """It has no mark, and the service still knows whose stream it was."""
    await scene.begin()
    await scene.put(KEYS, [0])
    await create_lease_table(lease_table(scene))
    for shard in await scene.stream_client().shards(scene.stream_id):
        await lease_table(scene).create(Lease(scene.stream_id, shard.shard_id, owner=WorkerId("java")))
    former: dict[bytes, HttpResponse] = {}

    async def remembering(request: HttpRequest) -> HttpResponse:
        answer = await scene.emulator.handle(request)
        if request.path == "/DescribeStream" and answer.status == 200:
            former[request.body] = answer
        return former.get(request.body, answer) if request.path == "/DescribeStream" else answer

    await scene.stream_client(remembering).table_of(scene.stream_id)
    scene.clock.advance(60)
    await scene.switch_stream(on=False)
    await scene.switch_stream(on=True)
    await scene.put(KEYS, [2])
    scene.answers["w"] = remembering
    scene.worker("w", RecordingSink())

    with pytest.raises(PossibleGap):
        await asyncio.wait_for(scene.tasks["w"], 200)


async def test_the_stream_of_another_table_with_leases_in_the_same_table_is_no_former_one(scene: FollowScene) -> None:
    await scene.begin()
    await follow_for_a_while(scene)
    request = create_table_request("other")
    request.stream_spec.enable_stream, request.stream_spec.expiration_time = True, 24
    await scene.caller.call(TABLE_OPERATIONS["CreateTable"], request)

    worker = scene.worker("w", RecordingSink(), table="other")
    await until(lambda: worker.status.channels)
    worker.drain()
    await scene.tasks["w"]
    await scene.caller.call(TABLE_OPERATIONS["DeleteTable"], pb.DeleteTableRequest(table_name="other"))
    await replace_stream(scene)

    # of the two streams that are gone one is this table's; the other one has a mark that tells
    worker = scene.worker("x", RecordingSink(), GOES_ON)
    await until(lambda: worker.status.channels)
    assert len(worker.status.document()["possibleGaps"]) == 1


async def end_shard_without_children(scene: FollowScene) -> ShardId:
    """A shard is read to its end by a worker that dies before its children have leases."""
    await follow_for_a_while(scene)
    parent = ShardId(scene.split()[0])
    table = lease_table(scene)
    taken = await table.apply(change.take((await scene.leases())[parent], WorkerId("dead")))
    assert taken is not None
    assert await table.apply(change.store(taken, SHARD_END))
    return parent


async def test_a_child_that_had_no_lease_for_longer_than_the_retention_stops_every_worker(scene: FollowScene) -> None:
    await scene.begin()
    parent = await end_shard_without_children(scene)
    await scene.put(KEYS, [1])
    scene.clock.advance(25 * 3600)
    await scene.put(KEYS, [9])

    await check_that_workers_stop(scene)

    assert set(await scene.leases()) == {parent}


async def test_a_child_that_had_no_lease_for_longer_than_the_retention_is_told_and_read(scene: FollowScene) -> None:
    await scene.begin()
    parent = await end_shard_without_children(scene)
    await scene.put(KEYS, [1])
    scene.clock.advance(25 * 3600)
    await scene.put(KEYS, [9])

    sink = RecordingSink()
    worker = scene.worker("w", sink, GOES_ON)
    await until(lambda: len(sink.written) == len(KEYS))

    leases = await scene.leases()
    assert parent not in leases
    assert {gap["channel"] for gap in worker.status.document()["possibleGaps"]} == set(leases)


async def test_a_child_whose_lease_no_worker_has_used_for_longer_than_the_retention_stops_every_worker(
    scene: FollowScene,
) -> None:
    await scene.begin()
    await end_shard_without_children(scene)
    await sync_shards(scene.stream_client(), lease_table(scene), scene.stream_id)
    assert len(await scene.leases()) == 3
    await scene.put(KEYS, [1])
    scene.clock.advance(25 * 3600)
    await scene.put(KEYS, [9])

    await check_that_workers_stop(scene)


async def test_a_child_that_gets_its_lease_in_time_is_no_gap(scene: FollowScene) -> None:
    await scene.begin()
    await end_shard_without_children(scene)
    await scene.put(KEYS, [1])
    scene.clock.advance(23 * 3600)
    await scene.put(KEYS, [9])

    sink = RecordingSink()
    worker = scene.worker("w", sink)
    await until(lambda: len(sink.written) == 2 * len(KEYS))

    assert worker.status.document()["possibleGaps"] == []


async def test_a_first_look_at_an_old_stream_beside_another_worker_is_no_gap(scene: FollowScene) -> None:
    """The other one has created some of the first leases; parents of shards that have split long ago are gone."""
    await scene.begin()
    await scene.put(KEYS)
    scene.split()
    scene.clock.advance(30 * 3600)
    shard, *_ = await scene.stream_client().shards(scene.stream_id)
    table = lease_table(scene)
    worker = scene.worker("w", RecordingSink())
    await until(lambda: worker.status.channels)
    worker.drain()
    await scene.tasks["w"]
    for lease in (await scene.leases()).values():
        if lease.shard_id != shard.shard_id:
            assert await table.delete(lease)

    worker = scene.worker("x", RecordingSink())
    await until(lambda: len(worker.status.channels) == 2)

    assert worker.status.document()["possibleGaps"] == []
