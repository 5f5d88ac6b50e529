"""A held lease that was written anew is restored, unless another worker may have owned it in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.errors import TunnelError
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.holding.seen_leases import SeenLeases
from ots_tunnel.stream.holding.settings import LeaseSettings
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.lease import NO_WORKER, SHARD_END, Lease, Position, WorkerId
from ots_tunnel.stream.lease.requests import create_request
from ots_tunnel.stream.lease.row import encode_lease
from ots_tunnel.stream.shards import ShardId
from ots_tunnel.transport.inprocess import InProcessTransport
from tests.support.emulator.emulator_scene import CREDENTIALS
from tests.support.emulator.follow_scene import LEASES, FollowScene, following
from tests.support.emulator.stream_scene import quick_caller

pytestmark = pytest.mark.looptime

A, B, JAVA = WorkerId("A"), WorkerId("B"), WorkerId("java")
SHARD = ShardId("s")
BUSY = HttpResponse(503, {}, b"busy")


class Path:
    """The way of one worker to the service."""

    def __init__(self, scene: FollowScene) -> None:
        self.scene = scene
        self.is_dark = False
        self.hides_rows = False
        self.write_seconds = 0.0
        #: Writes to a lease whose answers arrive; then one is carried out without an answer, and the path is dark.
        self.answered_writes: int | None = None

    async def handle(self, request: HttpRequest) -> HttpResponse:
        if self.is_dark or (self.hides_rows and request.path == "/GetRow"):
            return BUSY
        answer = await self.scene.emulator.handle(request)
        if request.path == "/UpdateRow":
            await asyncio.sleep(self.write_seconds)
        if request.path == "/UpdateRow" and self.answered_writes is not None:
            if self.answered_writes == 0:
                self.is_dark = True
                return BUSY
            self.answered_writes -= 1
        return answer

    def loses_the_answer(self, after: int = 0) -> None:
        """To a write, after some that are answered."""
        self.answered_writes = after

    def recovers(self) -> None:
        self.is_dark, self.answered_writes = False, None

    @property
    def table(self) -> LeaseTable:
        return LeaseTable(ServiceCaller(InProcessTransport(self.handle), "demo", CREDENTIALS), LEASES)


class Scene:
    """One lease, which A holds over a path of its own."""

    def __init__(self, scene: FollowScene) -> None:
        self.stream_id = scene.stream_id
        self.path = Path(scene)
        self.table = LeaseTable(quick_caller(scene.emulator.handle), LEASES)

    async def row(self) -> Lease:
        [lease] = (await self.table.list(self.stream_id)).leases
        return lease

    async def take(self, me: WorkerId, table: LeaseTable) -> HeldLease:
        sent_at = asyncio.get_running_loop().time()
        taken = await table.apply(change.take(await self.row(), me))
        assert taken is not None
        return HeldLease(table, LeaseSettings(), taken, sent_at, asyncio.get_running_loop().time)

    async def write_anew(self) -> None:
        late = create_request(LEASES, Lease(self.stream_id, SHARD))
        late.condition.row_existence = pb.IGNORE
        late.row = encode_lease(Lease(self.stream_id, SHARD))
        await asyncio.sleep(0.1)  # the row has another time
        await self.table.put(late)


@pytest.fixture
async def begun() -> AsyncIterator[FollowScene]:
    async with following() as made:
        yield made


async def scene_of(begun: FollowScene) -> tuple[Scene, HeldLease]:
    await begun.begin()
    scene = Scene(begun)
    await create_lease_table(scene.table)
    await scene.table.create(Lease(begun.stream_id, SHARD))
    held = await scene.take(A, scene.path.table)
    await held.store(Position("p1"))
    return scene, held


def may_write(held: HeldLease) -> bool:
    return held.fence.left() > 0


async def test_what_was_lost_is_restored(begun: FollowScene) -> None:
    scene, held = await scene_of(begun)
    before = held.lease
    await scene.write_anew()
    await held.store(Position("p2"))

    row = await scene.row()
    assert (row.owner, row.checkpoint) == (A, "p2")
    assert row.counter > before.counter
    assert held.lease == row
    assert may_write(held)


async def test_an_owner_that_has_expired_restores_nothing(begun: FollowScene) -> None:
    """Its renewal began in time, on a dark path; another worker has taken the lease since."""
    scene, held = await scene_of(begun)
    await asyncio.sleep(19.5)
    scene.path.is_dark = True
    renewing = asyncio.ensure_future(held.renew())
    await asyncio.sleep(1)
    assert held.has_expired
    await scene.take(B, scene.table)
    await scene.write_anew()
    scene.path.recovers()

    assert not await renewing
    assert (await scene.row()).owner == NO_WORKER


@pytest.mark.parametrize("heir", [B, NO_WORKER])
async def test_a_lease_that_may_be_given_away_is_not_restored(begun: FollowScene, heir: WorkerId) -> None:
    scene, held = await scene_of(begun)
    scene.path.loses_the_answer(after=1)
    with pytest.raises(TunnelError):
        await held.give(heir)
    scene.path.recovers()
    theirs = await scene.take(B, scene.table)
    await theirs.store(SHARD_END)
    await scene.write_anew()
    await held.give(heir)

    assert held.is_over
    assert (await scene.row()).owner == NO_WORKER
    assert await theirs.renew()
    assert (await scene.row()).is_finished


async def test_a_checkpoint_without_an_answer_is_restored(begun: FollowScene) -> None:
    """Others have seen it: after SHARD_END the children are read."""
    scene, held = await scene_of(begun)
    scene.path.loses_the_answer()
    with pytest.raises(TunnelError):
        await held.store(SHARD_END)
    scene.path.recovers()
    assert (await scene.row()).is_finished
    await scene.write_anew()

    assert await held.renew()
    assert (await scene.row()).is_finished


async def test_a_lease_of_which_nothing_can_be_read_after_a_refusal_is_lost(begun: FollowScene) -> None:
    """The one that has taken it may be a worker of the Java library, which does not wait."""
    scene, held = await scene_of(begun)
    await scene.write_anew()
    scene.path.hides_rows = True

    assert not await held.renew()
    assert not may_write(held)


async def test_a_restored_lease_is_no_second_worker_under_this_id(begun: FollowScene) -> None:
    """It was restored without an answer; then a former owner of the Java library renews by the counter alone."""
    scene, held = await scene_of(begun)
    seen = SeenLeases(scene.path.table, scene.stream_id, A, asyncio.get_running_loop().time, 5.0, print)
    await seen.list({SHARD: held})
    await scene.write_anew()
    scene.path.loses_the_answer(after=1)
    with pytest.raises(TunnelError):
        await held.renew()
    scene.path.recovers()
    assert await held.renew()
    await seen.list({SHARD: held})
    assert held.taken.created_ms == (await scene.row()).created_ms

    assert await scene.table.apply(change.renew(await scene.row())) is not None
    assert not await held.renew()
    seen.lost(held)
    await seen.list({})
    seen.check_twin(frozenset())


async def test_a_late_take_of_a_new_row_fails_where_the_row_is_another_one(begun: FollowScene) -> None:
    """The row looks as it was listed, and another worker has taken it in between."""
    await begun.begin()
    scene = Scene(begun)
    await create_lease_table(scene.table)
    await scene.table.create(Lease(begun.stream_id, SHARD))
    late = change.take(await scene.row(), B)
    held = await scene.take(A, scene.path.table)
    await scene.write_anew()

    assert await scene.table.apply(late) is None
    assert await held.renew()


async def test_a_restore_that_is_answered_too_late_is_no_second_worker_under_this_id(begun: FollowScene) -> None:
    """The machine has slept meanwhile."""
    scene, held = await scene_of(begun)
    seen = SeenLeases(scene.path.table, scene.stream_id, A, asyncio.get_running_loop().time, 5.0, print)
    await seen.list({SHARD: held})
    await asyncio.sleep(17)
    await scene.write_anew()
    scene.path.write_seconds = 2.0

    assert not await held.renew()
    assert (await scene.row()).owner == A
    seen.lost(held)
    await seen.list({})
    seen.check_twin(frozenset())


async def test_a_restored_lease_that_was_asked_for_is_handed_over_with_the_thiefs_mark(begun: FollowScene) -> None:
    """Without it the library would hold the lease and read nothing."""
    scene, held = await scene_of(begun)
    assert await scene.table.apply(change.steal(await scene.row(), JAVA)) is not None
    await scene.write_anew()
    assert await held.renew()
    await held.give(JAVA)

    row = await scene.row()
    assert (row.owner, row.stealer) == (JAVA, JAVA)
