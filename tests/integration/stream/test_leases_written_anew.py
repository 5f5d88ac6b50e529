"""A worker of the Java library writes the lease of a shard anew that it holds for a new one, whatever there is.

Its write has no condition. It may be late, and take owner, counter and checkpoint from a lease in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ots_tunnel.errors import LeaseTableNotFound
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.lease import NO_WORKER, TRIM_HORIZON, Lease, WorkerId
from ots_tunnel.stream.lease.requests import delete_request
from ots_tunnel.stream.lease.row import lease_key
from ots_tunnel.stream.shards import ShardId
from tests.support.emulator.follow_scene import KEYS, LEASES, FollowScene, following
from tests.support.emulator.stream_scene import quick_caller
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime


@pytest.fixture
async def scene() -> AsyncIterator[FollowScene]:
    async with following() as made:
        yield made


class Slow(RecordingSink):
    """Needs some seconds for a batch."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.begun = 0

    async def write(self, batch: Any, guard: Any) -> None:
        self.begun += 1
        await asyncio.sleep(self.seconds)
        await super().write(batch, guard)


def table_of(scene: FollowScene) -> LeaseTable:
    return LeaseTable(quick_caller(scene.emulator.handle), LEASES)


async def delete(scene: FollowScene, shard: ShardId) -> None:
    """What a person does."""
    request = delete_request(LEASES, Lease(scene.stream_id, shard))
    request.condition.CopyFrom(pb.Condition(row_existence=pb.IGNORE))
    request.primary_key = encode_row(lease_key(scene.stream_id, shard), delete=True)
    await table_of(scene).remove(request)


def is_finished(scene: FollowScene, shard: ShardId) -> Callable[[], Any]:
    async def asked() -> bool:
        lease = (await scene.leases()).get(shard)
        return lease is not None and lease.is_finished

    return asked


async def read_and_split(scene: FollowScene, *sinks: RecordingSink) -> ShardId:
    """Workers read a shard, which is split then, and has a change behind the split; the shard."""
    await scene.begin()
    await scene.put(KEYS, [1])
    for number, sink in enumerate(sinks):
        scene.worker(f"w{number}", sink)
    await until(lambda: written(*sinks) == len(KEYS))
    [parent] = await scene.leases()
    scene.split()
    await scene.put(KEYS, [2])
    return parent


async def read_across_a_split(scene: FollowScene, *sinks: RecordingSink) -> ShardId:
    """Workers read a shard to its end, and what its children bring; the shard."""
    parent = await read_and_split(scene, *sinks)
    await until(lambda: written(*sinks) == 2 * len(KEYS))
    return parent


def written(*sinks: RecordingSink) -> int:
    return sum(len(sink.written) for sink in sinks)


def restored(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.channel_id for record in caplog.records if record.action == LogAction.LEASE_WRITTEN_ANEW]


@pytest.mark.parametrize("later", [0.5, 2.0, 3.5, 5.0])
async def test_a_lease_in_use_is_restored_and_no_other_worker_takes_it(
    scene: FollowScene, later: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Two owners would write at one time, and the former one old values over new ones."""
    await scene.begin()
    await scene.put(KEYS, [1])
    sinks = Slow(3.0), Slow(3.0)
    for number, sink in enumerate(sinks):
        scene.worker(f"w{number}", sink)
    await until(lambda: written(*sinks) == len(KEYS))
    await asyncio.sleep(15 + later)
    [(shard, before)] = (await scene.leases()).items()
    await scene.put(KEYS, [2])
    begun = sum(sink.begun for sink in sinks)
    await until(lambda: sum(sink.begun for sink in sinks) > begun)
    await scene.write_lease_anew(shard)
    await scene.put(KEYS, [3])
    await until(lambda: written(*sinks) >= 3 * len(KEYS))
    await asyncio.sleep(30)

    after = (await scene.leases())[shard]
    assert after.owner == before.owner
    assert after.counter > before.counter
    assert written(*sinks) == 3 * len(KEYS), "nothing is read again: the checkpoint was restored"
    assert min(written(sink) for sink in sinks) == 0
    assert restored(caplog) == [shard]


async def test_a_restored_lease_is_handed_over_as_any_other(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS, [1])
    sink = RecordingSink()
    first = scene.worker("first", sink)
    await until(lambda: written(sink) == len(KEYS))
    [shard] = await scene.leases()
    await asyncio.sleep(30)
    await scene.write_lease_anew(shard)
    await asyncio.sleep(10)
    scene.worker("second", sink)
    await asyncio.sleep(30)
    first.drain()
    await scene.tasks["first"]
    await scene.put(KEYS, [2])
    await until(lambda: written(sink) == 2 * len(KEYS))

    assert (await scene.leases())[shard].owner == "second"


async def test_a_worker_that_stops_restores_what_it_hands_over(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS, [1])
    sink = RecordingSink()
    worker = scene.worker("w", sink)
    await until(lambda: written(sink) == len(KEYS))
    await asyncio.sleep(10)
    [(shard, before)] = (await scene.leases()).items()
    await scene.write_lease_anew(shard)
    worker.drain()
    await scene.tasks["w"]

    after = (await scene.leases())[shard]
    assert (after.owner, after.checkpoint) == (NO_WORKER, before.checkpoint)


@pytest.mark.parametrize("later", [0.0, 0.7, 3.1, 7.0, 20.0])
async def test_a_finished_lease_is_restored_however_soon_it_is_written_anew(scene: FollowScene, later: float) -> None:
    """The other worker may never have listed it finished."""
    sinks = RecordingSink(), RecordingSink()
    parent = await read_and_split(scene, *sinks)
    await until(is_finished(scene, parent))
    await asyncio.sleep(later)
    await scene.write_lease_anew(parent)
    await until(lambda: written(*sinks) >= 2 * len(KEYS))
    await asyncio.sleep(60)

    assert written(*sinks) == 2 * len(KEYS)
    assert await is_finished(scene, parent)()


async def test_a_finished_shard_whose_owner_dies_is_not_read_again_while_the_leases_cannot_be_read(
    scene: FollowScene,
) -> None:
    """The lease is renewed meanwhile, and its counter passes that of the finished one."""
    sinks = RecordingSink(), RecordingSink()
    parent = await read_across_a_split(scene, *sinks)
    await asyncio.sleep(30)
    owner = str((await scene.leases())[parent].owner)
    [other] = scene.tasks.keys() - {owner}
    scene.tasks[owner].cancel()
    is_dark = True

    async def handle(request: HttpRequest) -> HttpResponse:
        if request.path == "/GetRow" and is_dark:
            return HttpResponse(503, {}, b"busy")
        return await scene.emulator.handle(request)

    scene.answers[other] = handle
    await asyncio.sleep(4)
    await scene.write_lease_anew(parent)
    await asyncio.sleep(200)
    is_dark = False
    await until(is_finished(scene, parent))

    assert written(*sinks) == 2 * len(KEYS)


@pytest.mark.parametrize("later", [1.0, 2.5, 4.0, 5.5])
async def test_a_finished_row_that_a_person_deletes_is_read_again_also_with_several_workers(
    scene: FollowScene, later: float
) -> None:
    sinks = RecordingSink(), RecordingSink(), RecordingSink()
    parent = await read_across_a_split(scene, *sinks)
    scene.worker("late", sinks[0], FollowSettings(sync_interval=0.5))
    await asyncio.sleep(30 + later)
    await delete(scene, parent)
    await until(lambda: written(*sinks) == 3 * len(KEYS), 120)


@pytest.mark.parametrize("make", ["deleted", "taken"])
async def test_a_lease_that_is_lost_otherwise_is_not_restored(scene: FollowScene, make: str) -> None:
    await scene.begin()
    await scene.put(KEYS, [1])
    sink = RecordingSink()
    scene.worker("w", sink)
    await until(lambda: written(sink) == len(KEYS))
    await asyncio.sleep(10)
    [shard] = await scene.leases()
    if make == "deleted":
        await delete(scene, shard)
        await table_of(scene).create(Lease(scene.stream_id, shard))
        await until(lambda: written(sink) == 2 * len(KEYS))
    else:
        await scene.write_lease_anew(shard)
        theirs = await table_of(scene).apply(change.take((await scene.leases())[shard], WorkerId("java")))
        await asyncio.sleep(10)
        assert (await scene.leases())[shard] == theirs


@pytest.mark.parametrize("later", [1.0, 3.0, 5.0])
async def test_nothing_is_restored_in_a_table_that_was_made_to_begin_anew(scene: FollowScene, later: float) -> None:
    """A worker of the Java library has created its leases."""
    await scene.begin()
    await scene.put(KEYS, [1])
    sink = RecordingSink()
    scene.worker("w", sink)
    await until(lambda: written(sink) == len(KEYS))
    await asyncio.sleep(20 + later)
    [shard] = await scene.leases()
    await scene.caller.call(TABLE_OPERATIONS["DeleteTable"], pb.DeleteTableRequest(table_name=LEASES))
    await create_lease_table(table_of(scene))
    await scene.write_lease_anew(shard)

    with pytest.raises(LeaseTableNotFound):
        await asyncio.wait_for(scene.tasks["w"], 60)
    assert (await scene.leases())[shard].checkpoint == TRIM_HORIZON


async def test_a_worker_that_stops_leaves_nothing_to_one_that_has_asked_and_stops_too(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS, [1])
    scene.split()
    sink, slow = RecordingSink(), Slow(9.0)
    first = scene.worker("first", slow)
    await until(lambda: slow.begun > 0)
    await asyncio.sleep(40)
    await scene.put(KEYS, [2])
    await asyncio.sleep(5)
    second = scene.worker("second", sink)

    async def is_asked() -> bool:
        return any(lease.stealer == "second" != lease.owner for lease in (await scene.leases()).values())

    await until(is_asked)
    first.drain()
    second.drain()
    await asyncio.gather(scene.tasks["first"], scene.tasks["second"])

    assert {lease.owner for lease in (await scene.leases()).values()} == {NO_WORKER}
