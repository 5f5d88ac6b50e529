"""A worker whose calls fail for a while: answers of others, renewals that end late, and what the status says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.errors import CodecError, ReadTimeout, TunnelError
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.rpc import error_body
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.holding.keeper import LeaseKeeper
from ots_tunnel.stream.holding.settings import LeaseSettings
from ots_tunnel.stream.lease.lease import Lease, WorkerId
from ots_tunnel.stream.shards import ShardId
from tests.support.emulator.emulator_scene import Handle
from tests.support.emulator.follow_scene import KEYS, FollowScene, following
from tests.support.emulator.stream_scene import quick_caller
from tests.support.emulator.virtual_scene import LoopClock
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

ME = WorkerId("me")
#: No repetition: what fails is made again in the next round.
ONCE = Backoff(initial=1, factor=1, cap=1, jitter=0, total=0)
PAGE = b"<html>try again later</html>"


class Work:
    """What a keeper calls."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.errors: list[TunnelError] = []

    def gained(self, held: HeldLease) -> None:
        self.events.append(f"gained {held.shard_id}")

    def asked(self, held: HeldLease) -> None:
        self.events.append(f"asked {held.shard_id}")

    def lost(self, held: HeldLease) -> None:
        self.events.append(f"lost {held.shard_id}")

    def failed(self, error: TunnelError) -> None:
        self.errors.append(error)


class Outage:
    """One worker of a table with one lease; `answer` replaces the service where it is set."""

    def __init__(self, settings: LeaseSettings) -> None:
        self.emulator = Emulator(settings=Settings(init_delay=0.01, date_skew=None), clock=LoopClock(1_700_000_000.0))
        self.answer: Handle | None = None
        self.work = Work()
        table = LeaseTable(quick_caller(self._handle), "leases", schedule=ONCE)
        clock = asyncio.get_running_loop().time
        self.keeper = LeaseKeeper(table, "s", ME, self.work, settings, clock=clock)

    async def _handle(self, request: HttpRequest) -> HttpResponse:
        return await (self.answer or self.emulator.handle)(request)


@asynccontextmanager
async def outage(settings: LeaseSettings | None = None) -> AsyncIterator[tuple[Outage, asyncio.Task[None]]]:
    """The worker runs and holds the lease."""
    made = Outage(settings or LeaseSettings())
    table = LeaseTable(quick_caller(made.emulator.handle), "leases")
    await create_lease_table(table)
    await table.create(Lease("s", ShardId("s0")))
    running = asyncio.get_running_loop().create_task(made.keeper.run())
    try:
        await until(lambda: made.keeper.held, what="the lease is held")
        yield made, running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    "page",
    [
        HttpResponse(200, {"x-ots-requestid": "r"}, PAGE),
        HttpResponse(200, {}, PAGE),
        HttpResponse(404, {}, PAGE),
        HttpResponse(429, {}, PAGE),
        HttpResponse(403, {"x-ots-requestid": "r"}, error_body("OTSAuthFailed", "the key is not known yet")),
    ],
)
async def test_an_answer_that_may_be_another_one_the_next_time_does_not_end_a_worker(page: HttpResponse) -> None:
    async with outage() as (scene, running):

        async def another(_: HttpRequest) -> HttpResponse:
            return page

        scene.answer = another
        await asyncio.sleep(8)
        scene.answer = None
        await asyncio.sleep(60)

        assert not running.done()
        assert scene.work.events == ["gained s0"]
        assert scene.work.errors


async def test_a_renewal_of_a_lease_that_was_lost_does_not_move_the_counter_of_the_next_one() -> None:
    """It ends late: its lease has expired and is taken anew before it looks at the row."""
    async with outage(replace(LeaseSettings(), take_interval=0.5)) as (scene, running):
        [held] = scene.keeper.held.values()

        async def dark(request: HttpRequest) -> HttpResponse:
            if request.path == "/UpdateRow":
                await asyncio.sleep(2.9)
            raise ReadTimeout("no complete answer in time")

        scene.answer = dark
        await until(lambda: held.has_expired, pause=0.01)
        scene.answer = None  # the renewal under way is answered by nobody, and then reads the row
        await asyncio.sleep(60)

        assert not running.done()
        assert scene.work.events == ["gained s0", "lost s0", "gained s0"]


@pytest.fixture
async def scene() -> AsyncIterator[FollowScene]:
    async with following() as made:
        yield made


async def silent(_: HttpRequest) -> HttpResponse:
    raise ReadTimeout("no complete answer in time")


async def test_the_status_says_when_the_service_does_not_answer(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS)
    sink = RecordingSink()
    worker = scene.worker("w", sink)
    await until(lambda: len(sink.written) == len(KEYS))
    assert worker.status.error is None
    assert worker.status.is_ready

    scene.answers["w"] = silent
    await asyncio.sleep(60)
    assert "ReadTimeout" in str(worker.status.document()["error"])
    assert not worker.status.is_ready, "it has no lease any more"

    del scene.answers["w"]
    await asyncio.sleep(60)
    assert worker.status.error is None
    assert worker.status.is_ready


async def test_a_worker_without_leases_shows_that_its_calls_are_answered(scene: FollowScene) -> None:
    await scene.begin()
    first = scene.worker("first", RecordingSink())
    await until(lambda: first.status.channels)
    spare = scene.worker("spare", RecordingSink())
    spare.status.wall = asyncio.get_running_loop().time
    await asyncio.sleep(300)

    assert spare.status.channels == {}
    assert spare.status.last_heartbeat is not None
    assert asyncio.get_running_loop().time() - spare.status.last_heartbeat < 20


async def test_a_dropped_shard_is_told_before_its_lease_goes(scene: FollowScene) -> None:
    """The lease of one goes, and the call for the next one fails: what the first one had must not be lost silently."""
    await scene.begin()
    worker = scene.worker("w", RecordingSink(), FollowSettings(stops_at_gaps=False))
    await until(lambda: worker.status.channels)
    deletes = 0

    async def failing(request: HttpRequest) -> HttpResponse:
        nonlocal deletes
        if request.path == "/DeleteRow":
            deletes += 1
            if deletes == 2:
                raise CodecError("an answer that nobody can read")
            if deletes > 2:
                raise ReadTimeout("no complete answer in time")
        return await scene.emulator.handle(request)

    scene.answers["w"] = failing
    table = LeaseTable(quick_caller(scene.emulator.handle), "leases")
    for shard in ("gone1", "gone2"):
        await table.create(Lease(scene.stream_id, ShardId(shard)))
    await until(lambda: deletes >= 2)
    await asyncio.sleep(30)

    assert "gone1" not in await scene.leases()
    assert "gone1" in worker.status.possible_gaps
    assert worker.status.metrics.registry.value("ots_tunnel_possible_gaps_total", {"tunnel": "leases"}) == 2


async def test_a_worker_that_starts_behind_a_page_of_somebody_else_tries_again(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS)
    calls = 0

    async def another(request: HttpRequest) -> HttpResponse:
        nonlocal calls
        calls += 1
        return HttpResponse(200, {}, PAGE) if calls < 4 else await scene.emulator.handle(request)

    scene.answers["w"] = another
    sink = RecordingSink()
    scene.worker("w", sink)
    await until(lambda: len(sink.written) == len(KEYS) or scene.tasks["w"].done())

    assert len(sink.written) == len(KEYS)
