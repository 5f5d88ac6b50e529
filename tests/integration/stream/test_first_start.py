"""Where reading begins when the stream has no lease yet: one start for all shards, whoever creates the leases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ots_tunnel.client.table_calls import get_range_page, get_range_request
from ots_tunnel.errors import CodecError, ObjectNotExist
from ots_tunnel.model import Marker
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.plainbuffer.codec import decode_rows
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.holding.syncing import sync_shards
from ots_tunnel.stream.lease.row import KEY_NAMES
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


async def begin(scene: FollowScene) -> int:
    """A stream of five shards with records in each; returns Unix microseconds behind all of them."""
    await scene.begin()
    for number in range(1, 4):
        await scene.put(KEYS, [number])
        if number < 3:
            scene.split()
    await asyncio.sleep(10)
    return int(scene.clock.now() * 1e6)


async def has_leases(scene: FollowScene) -> bool:
    try:
        return bool(await scene.leases())
    except ObjectNotExist:
        return False  # no worker has created the table yet


async def test_workers_that_begin_together_read_from_one_start(scene: FollowScene) -> None:
    start = await begin(scene)

    async def slow(request: HttpRequest) -> HttpResponse:
        await asyncio.sleep(1 if request.path == "/GetShardIterator" else 0)
        return await scene.emulator.handle(request)

    scene.answers["first"] = slow
    sink = RecordingSink()
    scene.worker("first", sink, FollowSettings(start_us=start))
    await until(lambda: has_leases(scene), what="the first worker has created a lease")
    scene.worker("second", sink, FollowSettings(start_us=start + 1_000_000))
    await asyncio.sleep(30)
    await scene.put(KEYS, [9])
    await until(lambda: {(key, 9) for key in KEYS} <= set(sink.written))

    assert {number for _, number in sink.written} == {9}


async def test_of_two_workers_that_find_no_lease_the_first_start_counts(scene: FollowScene) -> None:
    """The second one looks before the first one has created a lease, and is faster then."""
    start = await begin(scene)
    asked = asyncio.Event()

    async def slow(request: HttpRequest) -> HttpResponse:
        if request.path == "/GetShardIterator":
            asked.set()
            await asyncio.sleep(5)
        return await scene.emulator.handle(request)

    scene.answers["first"] = slow
    sink = RecordingSink()
    scene.worker("first", sink, FollowSettings(start_us=start))
    await asked.wait()
    await scene.put(KEYS, [8])
    await asyncio.sleep(1)
    scene.worker("second", sink, FollowSettings(start_us=int(scene.clock.now() * 1e6)))
    await asyncio.sleep(30)
    await scene.put(KEYS, [9])
    await until(lambda: {(key, 9) for key in KEYS} <= set(sink.written))

    assert {number for _, number in sink.written} == {8, 9}


async def test_a_start_that_was_cut_off_is_finished_by_the_next_worker(scene: FollowScene) -> None:
    start = await begin(scene)
    table = LeaseTable(quick_caller(scene.emulator.handle), LEASES)
    await create_lease_table(table)
    iterators = 0

    async def failing(request: HttpRequest) -> HttpResponse:
        nonlocal iterators
        iterators += request.path == "/GetShardIterator"
        if iterators == 3:
            raise CodecError("an answer that nobody can read")
        return await scene.emulator.handle(request)

    with pytest.raises(CodecError):
        await sync_shards(scene.stream_client(failing), table, scene.stream_id, start_us=start)
    assert len(await scene.leases()) == 2
    await scene.put(KEYS, [9])
    much_later = start + 3_600_000_000

    sink = RecordingSink()
    scene.worker("w", sink, FollowSettings(start_us=much_later))
    await until(lambda: {(key, 9) for key in KEYS} <= set(sink.written), what="the first start counts")

    assert {number for _, number in sink.written} == {9}


async def test_a_shard_that_comes_later_is_read_from_its_oldest_record(scene: FollowScene) -> None:
    start = await begin(scene)
    table = LeaseTable(quick_caller(scene.emulator.handle), LEASES)
    await create_lease_table(table)
    await sync_shards(scene.stream_client(), table, scene.stream_id, start_us=start)
    children = scene.split()[1:]

    await sync_shards(scene.stream_client(), table, scene.stream_id, start_us=start + 3_600_000_000)

    client = scene.stream_client()
    first = {child: await client.iterator(scene.stream_id, ShardId(child)) for child in children}
    assert {child: (await scene.leases())[ShardId(child)].checkpoint for child in children} == first


async def test_what_a_start_leaves_in_the_table_is_no_lease(scene: FollowScene) -> None:
    """The Java library lists the rows of leases alone; ours are gone when every shard has one."""
    start = await begin(scene)
    table = LeaseTable(quick_caller(scene.emulator.handle), LEASES)
    await create_lease_table(table)

    await sync_shards(scene.stream_client(), table, scene.stream_id, start_us=start)

    every = [tuple((name, marker) for name in KEY_NAMES) for marker in (Marker.INF_MIN, Marker.INF_MAX)]
    answer = await table.call("GetRange", get_range_request(LEASES, *every, max_versions=1))
    rows = decode_rows(get_range_page(answer).rows)
    assert len(rows) == 5
