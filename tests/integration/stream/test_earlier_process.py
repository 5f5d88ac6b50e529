"""A worker that starts under the id of one that was killed: what that one has sent may still take effect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ots_tunnel.sinks import Batch, Guard
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.lease.lease import Lease, WorkerId
from tests.support.emulator.follow_scene import KEYS, LEASES, FollowScene, following
from tests.support.emulator.stream_scene import quick_caller
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

ME, OTHER = WorkerId("w"), WorkerId("other")
#: D of the default times.
D = (20 - 6) / 3


@pytest.fixture
async def scene() -> AsyncIterator[FollowScene]:
    async with following() as made:
        yield made


class Timed(RecordingSink):
    """Remembers when its first write began."""

    first: float | None = None

    async def write(self, batch: Batch, guard: Guard) -> None:
        if self.first is None:
            self.first = asyncio.get_running_loop().time()
        await super().write(batch, guard)


async def owned(scene: FollowScene, owner: WorkerId, stealer: WorkerId) -> None:
    """A stream of one shard with records, whose lease is as another process has left it."""
    await scene.begin()
    await scene.put(KEYS)
    [shard] = await scene.stream_client().shards(scene.stream_id)
    table = LeaseTable(quick_caller(scene.emulator.handle), LEASES)
    await create_lease_table(table)
    await table.create(Lease(scene.stream_id, shard.shard_id, 7, owner, stealer))


async def test_it_holds_its_lease_at_once_and_writes_when_no_write_of_the_other_process_can_take_effect(
    scene: FollowScene,
) -> None:
    await owned(scene, ME, WorkerId(""))
    began = asyncio.get_running_loop().time()
    sink = Timed()
    worker = scene.worker(ME, sink)
    await asyncio.sleep(1)
    assert worker.status.channels, "the lease is renewed"

    await until(lambda: len(sink.written) == len(KEYS))

    assert sink.first is not None
    assert D <= sink.first - began < D + 2


async def test_a_lease_that_was_handed_over_has_no_writes_before_it(scene: FollowScene) -> None:
    await owned(scene, ME, ME)
    sink = Timed()
    scene.worker(ME, sink)

    await asyncio.sleep(2)

    assert len(sink.written) == len(KEYS)


async def test_it_passes_on_what_was_asked_for_when_no_write_can_take_effect(scene: FollowScene) -> None:
    await owned(scene, ME, OTHER)
    scene.worker(ME, RecordingSink())

    await asyncio.sleep(D - 0.5)
    assert {lease.owner for lease in (await scene.leases()).values()} == {ME}
    await asyncio.sleep(7)
    assert {lease.owner for lease in (await scene.leases()).values()} == {OTHER}


async def test_a_stop_soon_after_the_start_leaves_to_expire_what_may_still_be_written(scene: FollowScene) -> None:
    await owned(scene, ME, OTHER)
    worker = scene.worker(ME, RecordingSink())
    await asyncio.sleep(1)

    worker.drain()
    await scene.tasks[ME]

    assert {lease.owner for lease in (await scene.leases()).values()} == {ME}
