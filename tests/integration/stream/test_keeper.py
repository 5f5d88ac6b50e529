"""Workers that share the leases of a table, on an emulator and in the loop's time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.errors import (
    ConfigError,
    ObjectNotExist,
    OwnershipLost,
    PermissionDenied,
    ReadTimeout,
    ServerUnavailable,
    TunnelError,
)
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.rpc import error_body
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.holding.keeper import LeaseKeeper
from ots_tunnel.stream.holding.settings import LeaseSettings
from ots_tunnel.stream.holding.syncing import sync_shards
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.lease import SHARD_END, Lease, Position, WorkerId
from ots_tunnel.stream.lease.row import ATTRIBUTES, lease_key
from ots_tunnel.stream.shards import ShardId
from tests.support.emulator.emulator_scene import TABLE, Handle
from tests.support.emulator.stream_scene import StreamScene, quick_caller
from tests.support.emulator.virtual_scene import LoopClock
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

ME, OTHER = WorkerId("me"), WorkerId("other")
SETTINGS = LeaseSettings()
#: No repetition: what fails is made again in the next round.
ONCE = Backoff(initial=1, factor=1, cap=1, jitter=0, total=0)


class Recorder:
    """The work of a worker that has nothing to finish: what it was called for."""

    def __init__(self) -> None:
        self.keeper: LeaseKeeper | None = None
        self.events: list[str] = []
        self.errors: list[TunnelError] = []
        self.batch_seconds = 0.0
        self.leaving: dict[HeldLease, asyncio.Task[None]] = {}

    def gained(self, held: HeldLease) -> None:
        self.events.append(f"gained {held.shard_id}")

    def asked(self, held: HeldLease) -> None:
        if held not in self.leaving or self.leaving[held].done():
            self.events.append(f"asked {held.shard_id}")
            self.leaving[held] = asyncio.get_running_loop().create_task(self._leave(held))

    def lost(self, held: HeldLease) -> None:
        self.events.append(f"lost {held.shard_id}")

    def failed(self, error: TunnelError) -> None:
        self.errors.append(error)

    async def _leave(self, held: HeldLease) -> None:
        await asyncio.sleep(self.batch_seconds)
        assert self.keeper is not None
        await self.keeper.give(held)


class Scene:
    """A table of leases and its workers."""

    def __init__(self) -> None:
        self.emulator = Emulator(settings=Settings(init_delay=0.01, date_skew=None), clock=LoopClock(1_700_000_000.0))
        #: Answers calls in place of the emulator, by worker.
        self.answers: dict[WorkerId, Handle] = {}
        self.table = LeaseTable(quick_caller(self.emulator.handle), "leases")
        self.tasks: dict[WorkerId, asyncio.Task[None]] = {}

    async def create(self, *leases: Lease) -> None:
        await create_lease_table(self.table)
        for lease in leases:
            await self.table.create(lease)

    def worker(self, me: WorkerId, settings: LeaseSettings = SETTINGS) -> tuple[LeaseKeeper, Recorder]:
        """Start a worker."""

        async def handle(request: HttpRequest) -> HttpResponse:
            return await self.answers.get(me, self.emulator.handle)(request)

        work = Recorder()
        clock = asyncio.get_running_loop().time
        table = LeaseTable(quick_caller(handle), "leases", schedule=ONCE)
        keeper = work.keeper = LeaseKeeper(table, "s", me, work, settings, clock=clock)
        self.tasks[me] = asyncio.get_running_loop().create_task(keeper.run())
        return keeper, work

    async def rows(self) -> dict[ShardId, Lease]:
        return {lease.shard_id: lease for lease in (await self.table.list("s")).leases}


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    yield made
    for task in made.tasks.values():
        task.cancel()
    await asyncio.gather(*made.tasks.values(), return_exceptions=True)


def leases(count: int) -> list[Lease]:
    return [Lease("s", ShardId(f"s{number}")) for number in range(count)]


def has(keeper: LeaseKeeper, count: int) -> Callable[[], bool]:
    return lambda: len(keeper.held) == count


async def test_a_worker_takes_everything_and_renews_it(scene: Scene) -> None:
    await scene.create(*leases(3))

    keeper, work = scene.worker(ME)
    await until(has(keeper, 3), what="three leases are held")
    assert sorted(work.events) == ["gained s0", "gained s1", "gained s2"]
    assert repr(keeper) == "LeaseKeeper(me, 3 of 3 leases)"
    await asyncio.sleep(600)

    rows = await scene.rows()
    assert {lease.owner for lease in rows.values()} == {ME}
    assert {lease.counter for lease in rows.values()} <= {100, 101, 102}
    assert keeper.leases.keys() == rows.keys()
    assert repr(keeper.held[ShardId("s0")]).startswith("HeldLease(s0, Fence(left=")
    assert all(held.fence.left() > 0 for held in keeper.held.values())
    assert work.errors == []
    assert len(work.events) == 3


async def test_a_newcomer_gets_its_share_by_asking(scene: Scene) -> None:
    await scene.create(*leases(4))
    first, given = scene.worker(ME)
    await until(has(first, 4))

    second, _ = scene.worker(OTHER)
    await until(has(second, 2), what="the newcomer has two leases")
    moved = asyncio.get_running_loop().time()

    assert len(first.held) == 2
    assert len([event for event in given.events if event.startswith("asked")]) == 2
    assert moved < 60
    await asyncio.sleep(600)
    assert (len(first.held), len(second.held)) == (2, 2)


async def test_a_batch_is_finished_before_a_lease_moves(scene: Scene) -> None:
    await scene.create(*leases(2))
    first, work = scene.worker(ME)
    work.batch_seconds = 60
    await until(has(first, 2))

    second, _ = scene.worker(OTHER)
    await until(lambda: work.leaving)
    [held] = work.leaving
    await asyncio.sleep(50)

    assert not held.is_over
    assert held.fence.left() > 0
    await until(has(second, 1))
    assert held.is_over
    assert held.fence.left() == float("-inf")


async def test_a_worker_that_does_not_steal_takes_what_is_free(scene: Scene) -> None:
    await scene.create(*leases(2))
    first, _ = scene.worker(ME)
    await until(has(first, 2))

    second, _ = scene.worker(OTHER, replace(SETTINGS, steals=False))
    await asyncio.sleep(120)

    assert len(second.held) == 0


async def test_a_worker_that_stops_hands_its_leases_over(scene: Scene) -> None:
    await scene.create(*leases(6))
    first, _ = scene.worker(ME)
    second, work = scene.worker(OTHER)
    await until(lambda: len(first.held) == len(second.held) == 3)
    work.batch_seconds = 30
    loop = asyncio.get_running_loop()

    began = loop.time()
    second.stop()
    await scene.tasks[OTHER]

    assert loop.time() - began == pytest.approx(30, abs=1)
    assert len(second.held) == 0
    assert not any(event.startswith("lost") for event in work.events)
    await until(has(first, 6), what="the other worker has all leases")
    # One round: not the duration of a lease.
    assert loop.time() - began < 30 + SETTINGS.take_interval + 1


async def test_the_last_worker_releases_its_leases(scene: Scene) -> None:
    await scene.create(*leases(2))
    only, _ = scene.worker(ME)
    await until(has(only, 2))

    only.stop()
    await scene.tasks[ME]

    assert {lease.owner for lease in (await scene.rows()).values()} == {""}
    next_one, _ = scene.worker(OTHER)
    await asyncio.sleep(1)
    assert len(next_one.held) == 2


async def test_a_worker_that_holds_nothing_stops_at_once(scene: Scene) -> None:
    await scene.create()
    keeper, _ = scene.worker(ME)
    await asyncio.sleep(1)

    keeper.stop()
    async with asyncio.timeout(1):
        await scene.tasks[ME]


async def test_a_take_that_a_stop_crosses_is_released(scene: Scene) -> None:
    await scene.create(*leases(1))

    async def slow(request: HttpRequest) -> HttpResponse:
        await asyncio.sleep(1 if request.path == "/UpdateRow" else 0)
        return await scene.emulator.handle(request)

    scene.answers[ME] = slow
    keeper, work = scene.worker(ME)
    await asyncio.sleep(0.5)

    keeper.stop()
    await scene.tasks[ME]

    assert work.events == ["gained s0", "asked s0"]
    assert (await scene.rows())[ShardId("s0")].owner == ""


async def test_what_was_handed_to_a_worker_that_stops_goes_on_to_another(scene: Scene) -> None:
    await scene.create(*leases(2))
    keeper, _ = scene.worker(ME)
    await until(has(keeper, 2))
    late = await scene.table.apply(change.hand_over(Lease("s", ShardId("late")), ME))
    assert late is None
    await scene.table.create(Lease("s", ShardId("late"), owner=ME, stealer=ME))
    await scene.table.create(Lease("s", ShardId("theirs"), owner=OTHER))

    keeper.stop()
    await scene.tasks[ME]

    assert {lease.owner for lease in (await scene.rows()).values()} == {OTHER}


async def test_a_lease_that_cannot_be_passed_on_does_not_keep_the_others(scene: Scene) -> None:
    await scene.create(*leases(1))
    keeper, _ = scene.worker(ME)
    await until(has(keeper, 1))
    await scene.table.create(Lease("s", ShardId("late"), owner=ME, stealer=ME))

    async def busy(request: HttpRequest) -> HttpResponse:
        if request.path == "/UpdateRow" and b"late" in request.body:
            return HttpResponse(503, {"x-ots-requestid": "r"}, error_body("OTSServerBusy", "busy"))
        return await scene.emulator.handle(request)

    scene.answers[ME] = busy
    keeper.stop()
    async with asyncio.timeout(2 * SETTINGS.duration):
        await scene.tasks[ME]

    assert (await scene.rows())[ShardId("s0")].owner == ""


async def test_a_killed_workers_leases_are_taken_when_their_time_is_over(scene: Scene) -> None:
    await scene.create(*leases(4))
    first, _ = scene.worker(ME)
    second, work = scene.worker(OTHER)
    await until(lambda: len(first.held) == len(second.held) == 2)
    began = asyncio.get_running_loop().time()

    scene.tasks[OTHER].cancel()
    await until(has(first, 4))

    passed = asyncio.get_running_loop().time() - began
    assert SETTINGS.duration - SETTINGS.renew_interval < passed < SETTINGS.duration + 2 * SETTINGS.take_interval
    assert len([event for event in work.events if event.startswith("lost")]) == 2


async def test_a_worker_that_starts_again_goes_on_with_its_leases_at_once(scene: Scene) -> None:
    await scene.create(
        Lease("s", ShardId("mine"), 7, ME, checkpoint=Position("i")), Lease("s", ShardId("asked"), 7, ME, OTHER)
    )

    keeper, _ = scene.worker(ME)
    await asyncio.sleep(1)

    assert keeper.held.keys() == {"mine"}
    assert keeper.held[ShardId("mine")].is_inherited
    # The process before it may have been killed in the middle of a write.
    assert (await scene.rows())[ShardId("asked")].owner == ME
    await asyncio.sleep(SETTINGS.take_interval)
    assert (await scene.rows())["asked"] == Lease("s", ShardId("asked"), 8, OTHER, OTHER)


@pytest.mark.parametrize("stealer", ["", OTHER])
async def test_a_lease_whose_writes_fail_does_not_keep_the_others(scene: Scene, stealer: WorkerId) -> None:
    await scene.create(Lease("s", ShardId("bad"), owner=ME, stealer=stealer), *leases(1))

    async def busy(request: HttpRequest) -> HttpResponse:
        if request.path == "/UpdateRow" and b"bad" in request.body:
            return HttpResponse(503, {"x-ots-requestid": "r"}, error_body("OTSServerBusy", "busy"))
        return await scene.emulator.handle(request)

    scene.answers[ME] = busy
    _, work = scene.worker(ME)
    await asyncio.sleep(10 * SETTINGS.take_interval)

    assert work.events == ["gained s0"]
    assert {type(error) for error in work.errors} == {ServerUnavailable}


async def test_a_worker_without_answers_loses_its_leases_and_gets_them_back(scene: Scene) -> None:
    await scene.create(*leases(1))
    keeper, work = scene.worker(ME)
    await until(has(keeper, 1))
    [held] = keeper.held.values()

    async def silent(_: HttpRequest) -> HttpResponse:
        raise ReadTimeout("no complete answer in time")

    scene.answers[ME] = silent
    await asyncio.sleep(SETTINGS.duration - SETTINGS.renew_interval - held.fence.deadline - 0.5)
    held.fence.check()
    await asyncio.sleep(SETTINGS.renew_interval + 0.5)
    with pytest.raises(OwnershipLost):
        held.fence.check()
    await until(has(keeper, 0))
    assert work.events == ["gained s0", "lost s0"]
    assert {type(error) for error in work.errors} == {ReadTimeout}
    with pytest.raises(OwnershipLost, match="shard s0 is not held"):
        await held.store(SHARD_END)

    del scene.answers[ME]
    await until(has(keeper, 1))
    assert work.events == ["gained s0", "lost s0", "gained s0"]


async def test_of_two_newcomers_one_gets_a_lease_that_is_free(scene: Scene) -> None:
    await scene.create(*leases(1))

    first, _ = scene.worker(ME)
    second, _ = scene.worker(OTHER)
    await asyncio.sleep(60)

    assert len(first.held) + len(second.held) == 1


async def test_a_renewal_that_is_slow_is_not_made_twice(scene: Scene) -> None:
    await scene.create(*leases(1))
    keeper, work = scene.worker(ME, replace(SETTINGS, renew_interval=1))
    await until(has(keeper, 1))
    updates = 0

    async def slow(request: HttpRequest) -> HttpResponse:
        nonlocal updates
        if request.path == "/UpdateRow":
            updates += 1
            await asyncio.sleep(2.9)
        return await scene.emulator.handle(request)

    scene.answers[ME] = slow
    await asyncio.sleep(30)

    assert 5 < updates <= 11
    assert work.errors == []
    assert len(keeper.held) == 1


async def test_a_lease_that_another_worker_took_is_lost_at_the_next_renewal(scene: Scene) -> None:
    await scene.create(*leases(1))
    keeper, work = scene.worker(ME)
    await until(has(keeper, 1))
    [held] = keeper.held.values()
    row = (await scene.rows())[held.shard_id]

    assert await scene.table.apply(change.take(row, OTHER)) is not None
    with pytest.raises(OwnershipLost):
        await held.store(Position("i"))
    await until(has(keeper, 0))

    assert work.events == ["gained s0", "lost s0"]
    assert (await scene.rows())[held.shard_id].owner == OTHER


async def test_a_checkpoint_is_stored_and_renews_the_lease(scene: Scene) -> None:
    await scene.create(*leases(1))
    keeper, _ = scene.worker(ME)
    await until(has(keeper, 1))
    [held] = keeper.held.values()
    before = held.fence.left()
    await asyncio.sleep(3)

    await asyncio.gather(held.store(Position("i")), held.renew())

    assert held.fence.left() > before - 1
    assert (await scene.rows())[held.shard_id].checkpoint == "i"
    assert held.lease == (await scene.rows())[held.shard_id]


async def test_a_lease_counts_from_before_its_renewal_was_sent(scene: Scene) -> None:
    await scene.create(*leases(1))

    async def late(request: HttpRequest) -> HttpResponse:
        answer = await scene.emulator.handle(request)
        await asyncio.sleep(2.5 if request.path == "/UpdateRow" else 0)
        return answer

    scene.answers[ME] = late
    keeper, _ = scene.worker(ME)
    await until(has(keeper, 1), pause=0.001)
    [held] = keeper.held.values()
    full = SETTINGS.duration - held.fence.deadline - 2.5

    assert held.fence.left() == pytest.approx(full, abs=0.1)
    await asyncio.sleep(1)
    await held.renew()
    assert held.fence.left() == pytest.approx(full, abs=0.1)


async def test_a_cancelled_checkpoint_does_not_cost_the_lease(scene: Scene) -> None:
    await scene.create(*leases(1))
    keeper, work = scene.worker(ME)
    await until(has(keeper, 1))
    [held] = keeper.held.values()

    async def hanging(request: HttpRequest) -> HttpResponse:
        await scene.emulator.handle(request)
        await asyncio.sleep(1000)
        raise AssertionError("cancelled long before")

    scene.answers[ME] = hanging
    storing = asyncio.get_running_loop().create_task(held.store(Position("i")))
    await asyncio.sleep(0.1)
    storing.cancel()
    del scene.answers[ME]

    assert await held.renew()
    assert held.lease.checkpoint == "i"
    assert work.events == ["gained s0"]


async def test_a_frequent_checkpoint_does_not_hide_a_thief(scene: Scene) -> None:
    await scene.create(*leases(2))
    first, work = scene.worker(ME)
    await until(has(first, 2))

    async def store_all_the_time() -> None:
        number = 0
        while True:
            for held in tuple(first.held.values()):
                number += 1
                if not held.is_over:
                    await held.store(Position(f"i{number}"))
            await asyncio.sleep(0.01)

    storing = asyncio.get_running_loop().create_task(store_all_the_time())
    second, _ = scene.worker(OTHER)
    await until(has(second, 1))
    storing.cancel()

    assert asyncio.get_running_loop().time() < 30
    assert len(work.leaving) == 1


async def test_a_give_that_fails_is_asked_for_again(scene: Scene) -> None:
    await scene.create(*leases(1))
    keeper, work = scene.worker(ME)
    await until(has(keeper, 1))

    async def busy(request: HttpRequest) -> HttpResponse:
        if request.path == "/UpdateRow":
            return HttpResponse(503, {"x-ots-requestid": "r"}, error_body("OTSServerBusy", "busy"))
        return await scene.emulator.handle(request)

    scene.answers[ME] = busy
    keeper.stop()
    await until(lambda: work.errors)
    assert isinstance(work.errors[0], ServerUnavailable)
    assert len(keeper.held) == 1
    del scene.answers[ME]
    await scene.tasks[ME]

    assert work.events.count("asked s0") == 2
    assert (await scene.rows())[ShardId("s0")].owner == ""


async def test_an_error_that_stays_ends_the_worker(scene: Scene) -> None:
    await scene.create(*leases(1))
    keeper, work = scene.worker(ME)
    await until(has(keeper, 1))

    async def forbidden(_: HttpRequest) -> HttpResponse:
        return HttpResponse(403, {"x-ots-requestid": "r"}, error_body("OTSNoPermissionAccess", "not allowed"))

    scene.answers[ME] = forbidden
    with pytest.raises(PermissionDenied):
        await scene.tasks[ME]

    assert work.events == ["gained s0", "lost s0"]
    assert len(keeper.held) == 0


async def test_a_table_that_is_missing_ends_the_worker(scene: Scene) -> None:
    scene.worker(ME)

    with pytest.raises(ObjectNotExist):
        await scene.tasks[ME]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"duration": float("nan")}, "duration: found nan, allowed is a number of seconds above 0"),
        ({"take_interval": float("inf")}, "take_interval: found inf, allowed is a number of seconds above 0"),
        ({"duration": 0}, "duration: found 0, allowed is a number of seconds above 0"),
        ({"renew_interval": -1}, "renew_interval: found -1, allowed is a number of seconds above 0"),
        ({"renew_interval": 7}, "renew_interval: found 7, allowed is at most a third of duration, 6.66667"),
    ],
)
def test_times_that_lose_leases_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        LeaseSettings(**settings)

    assert str(caught.value) == message


@asynccontextmanager
async def synced_scene() -> AsyncIterator[tuple[StreamScene, LeaseTable, str]]:
    scene = StreamScene(Emulator(settings=Settings(init_delay=0.01, date_skew=None), clock=LoopClock(1_700_000_000.0)))
    stream_id = await scene.create_stream()
    table = LeaseTable(quick_caller(scene.emulator.handle), "leases")
    await create_lease_table(table)
    yield scene, table, stream_id


async def test_a_sync_gives_every_shard_a_lease_and_tells_what_was_lost() -> None:
    async with synced_scene() as (scene, table, stream_id):
        client = scene.stream_client()
        await scene.put([f"k{number}" for number in range(8)])
        first = await sync_shards(client, table, stream_id)
        assert [lease.parents for lease, _ in first.create] == [frozenset()]
        scene.emulator.split("demo", TABLE)

        second = await sync_shards(client, table, stream_id)

        [parent] = [lease for lease, _ in first.create]
        assert [lease.parents for lease, _ in second.create] == [{parent.shard_id}] * 2
        assert len((await table.list(stream_id)).leases) == 3
        nothing = await sync_shards(client, table, stream_id)
        assert (nothing.create, nothing.delete, nothing.lost) == ((), (), ())
        finished = replace(second.create[0][0], shard_id=ShardId("dropped"), checkpoint=SHARD_END)
        unread = replace(finished, shard_id=ShardId("unread"), checkpoint=Position("i"))
        for lease in (finished, unread):
            await table.create(lease)

        plan = await sync_shards(client, table, stream_id)

        assert set(plan.delete) == {finished, unread}
        assert plan.lost == (unread,)
        assert len((await table.list(stream_id)).leases) == 3


async def test_a_take_without_an_answer_that_a_stop_crosses_is_released(scene: Scene) -> None:
    await scene.create(*leases(1))
    taking = asyncio.Event()

    async def carried_out(request: HttpRequest) -> HttpResponse:
        answer = await scene.emulator.handle(request)
        if request.path != "/UpdateRow" or taking.is_set():
            return answer
        taking.set()
        scene.answers[ME] = lost
        raise ReadTimeout("no complete answer in time")

    async def lost(request: HttpRequest) -> HttpResponse:
        """The row cannot be read either, for a while."""
        if request.path == "/GetRow":
            raise ReadTimeout("no complete answer in time")
        return await scene.emulator.handle(request)

    scene.answers[ME] = carried_out
    keeper, work = scene.worker(ME)
    await until(taking.is_set)
    keeper.stop()
    await scene.tasks[ME]

    assert [event for event in work.events if event.startswith("gained")] == []
    assert (await scene.rows())[ShardId("s0")].owner == ""


async def test_a_late_take_is_not_mistaken_for_a_later_one(scene: Scene) -> None:
    """The first take is carried out while the second one is under way, and neither is answered."""
    await scene.create(*leases(1))
    held_back: list[HttpRequest] = []

    async def first(request: HttpRequest) -> HttpResponse:
        if request.path == "/UpdateRow":
            held_back.append(request)
            raise ReadTimeout("no complete answer in time")
        if request.path == "/GetRow" and held_back:
            raise ReadTimeout("no complete answer in time")
        return await scene.emulator.handle(request)

    async def second(request: HttpRequest) -> HttpResponse:
        if request.path == "/UpdateRow" and held_back:
            await scene.emulator.handle(held_back.pop())
            scene.answers.pop(ME)
            raise ReadTimeout("no complete answer in time")
        return await scene.emulator.handle(request)

    scene.answers[ME] = first
    keeper, _ = scene.worker(ME)
    await until(lambda: held_back)
    await asyncio.sleep(1)
    scene.answers[ME] = second
    await until(has(keeper, 1))

    # The counter has moved twice: by the late take, and by one on top of it, whose time counts.
    assert (await scene.rows())[ShardId("s0")].counter >= 2


async def test_a_row_that_is_no_lease_is_reported_once_and_left_out(scene: Scene) -> None:
    await scene.create(*leases(2))
    row = encode_row(lease_key("s", ShardId("bad")), [Column(name, "x") for name in ATTRIBUTES])
    message = pb.PutRowRequest(table_name="leases", row=row, condition=pb.Condition(row_existence=pb.IGNORE))
    await scene.table.call("PutRow", message)

    keeper, work = scene.worker(ME)
    await until(has(keeper, 2))
    await asyncio.sleep(60)

    assert keeper.held.keys() == {"s0", "s1"}
    assert [str(error) for error in work.errors] == ["LeaseCounter of shard 'bad': found str, allowed is an integer"]


async def test_a_second_worker_under_one_id_ends_the_first_one_with_an_error_that_names_it(scene: Scene) -> None:
    await scene.create(*leases(2))
    first, _ = scene.worker(ME)
    await until(has(first, 2))
    task = scene.tasks[ME]

    second, _ = scene.worker(ME)
    with pytest.raises(ConfigError, match="worker id: found 'me', under which another worker of table 'leases' runs"):
        await task

    await until(has(second, 2))
    await asyncio.sleep(60)
    assert len(second.held) == 2


async def test_a_former_owner_that_renews_by_the_counter_alone_is_no_second_worker_under_this_id(scene: Scene) -> None:
    """A worker of the Java library does so whose lease another one has written anew: counters meet again."""
    await scene.create(*leases(2))
    keeper, work = scene.worker(ME)
    await until(has(keeper, 2))
    await asyncio.sleep(7)

    assert await scene.table.apply(change.renew((await scene.rows())[ShardId("s0")]))
    await until(lambda: "lost s0" in work.events, what="the renewal is refused")
    await asyncio.sleep(20)

    assert not scene.tasks[ME].done()
    assert work.events[-1] == "gained s0", "the lease is taken again"


@pytest.mark.parametrize("stopping", [3, 4])
async def test_workers_that_stop_at_one_time_leave_their_leases_to_those_that_stay(scene: Scene, stopping: int) -> None:
    """None of them names one as the heir that is stopping as well, or has ended."""
    await scene.create(*leases(12))
    workers = {name: scene.worker(WorkerId(name))[0] for name in "abcde"}
    await until(lambda: sum(len(each.held) for each in workers.values()) == 12)
    await asyncio.sleep(60)
    for name in sorted(workers)[:stopping]:
        workers[name].stop()
    await asyncio.gather(*(scene.tasks[WorkerId(name)] for name in sorted(workers)[:stopping]))
    staying = sorted(workers)[stopping:]
    await asyncio.sleep(2 * SETTINGS.take_interval)

    assert sum(len(workers[name].held) for name in staying) == 12


async def test_workers_that_all_stop_release_their_leases(scene: Scene) -> None:
    await scene.create(*leases(12))
    workers = {name: scene.worker(WorkerId(name))[0] for name in "abc"}
    await until(lambda: sum(len(each.held) for each in workers.values()) == 12)
    await asyncio.sleep(60)
    for each in workers.values():
        each.stop()
    await asyncio.gather(*scene.tasks.values())

    assert {lease.owner for lease in (await scene.rows()).values()} == {""}


async def test_beside_a_worker_that_has_died_the_other_one_takes_its_share_at_once(scene: Scene) -> None:
    """The rest of it waits until the dead one has expired: until then it counts."""
    await scene.create(*leases(12))
    workers = {name: scene.worker(WorkerId(name))[0] for name in "abc"}
    await until(lambda: sum(len(each.held) for each in workers.values()) == 12)
    await asyncio.sleep(60)
    scene.tasks[WorkerId("a")].cancel()
    await asyncio.sleep(1)
    workers["b"].stop()
    await scene.tasks[WorkerId("b")]
    await asyncio.sleep(SETTINGS.take_interval + 1)
    assert len(workers["c"].held) == 6

    await asyncio.sleep(SETTINGS.duration + SETTINGS.take_interval)
    assert len(workers["c"].held) == 12
