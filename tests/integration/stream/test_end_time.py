"""Workers that share a stream up to an end time: what is from before it comes, what is later does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.stream.lease.lease import SHARD_END
from ots_tunnel.stream.sinking.worker import StreamSinkWorker
from tests.support.emulator.follow_scene import KEYS, FollowScene, following
from tests.support.sinks.sinks import RecordingSink, check_order
from tests.support.waiting import until

pytestmark = pytest.mark.looptime


@pytest.fixture
async def scene() -> AsyncIterator[FollowScene]:
    async with following() as made:
        yield made


def now_us(scene: FollowScene) -> int:
    return int(scene.clock.now() * 1_000_000)


def are_completed(*workers: StreamSinkWorker) -> bool:
    return all(worker.status.document()["completed"] for worker in workers)


async def test_a_worker_stops_at_the_end_time_and_reports_it(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS, [1])
    await asyncio.sleep(10)
    end_us = now_us(scene)
    await asyncio.sleep(10)
    await scene.put(KEYS, [2])

    sink = RecordingSink()
    worker = scene.worker("w", sink, end_us=end_us)
    await until(lambda: are_completed(worker), what="completed")
    await asyncio.sleep(60)

    assert {number for _, number in sink.written} == {1}
    [channel] = worker.status.document()["channels"]
    assert (channel["state"], channel["endReached"], channel["lagSeconds"]) == ("OPEN", True, 0)


async def test_before_the_end_time_a_worker_is_not_completed(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS, [1])
    sink = RecordingSink()

    worker = scene.worker("w", sink, end_us=now_us(scene) + 100_000_000)
    await asyncio.sleep(90)
    assert not are_completed(worker)
    assert len(sink.written) == len(KEYS)

    await asyncio.sleep(60)
    assert are_completed(worker), "an empty read after the end tells"


async def test_shards_that_were_split_before_the_end_are_read_and_later_children_are_not(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS, [1])
    early, *_ = scene.split()
    await scene.put(KEYS, [2])
    await asyncio.sleep(10)
    end_us = now_us(scene)
    await asyncio.sleep(10)
    await scene.put(KEYS, [3])
    late, *children = scene.split()
    await scene.put(KEYS, [4])

    sink = RecordingSink()
    worker = scene.worker("w", sink, end_us=end_us)
    await until(lambda: are_completed(worker), what="completed")

    assert sorted(sink.written) == sorted((key, number) for key in KEYS for number in (1, 2))
    check_order(sink.written)
    leases = {str(shard): lease for shard, lease in (await scene.leases()).items()}
    assert leases[early].checkpoint == SHARD_END
    assert leases[late].checkpoint != SHARD_END, "its children would be read"
    states = {each["id"]: each["state"] for each in worker.status.document()["channels"]}
    assert {states[child] for child in children} == {"WAIT"}


async def test_two_workers_are_completed_and_what_one_leaves_the_other_one_takes(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS, [1])
    scene.split()
    scene.split()
    await scene.put(KEYS, [2])
    await asyncio.sleep(10)
    end_us = now_us(scene)
    await asyncio.sleep(10)
    await scene.put(KEYS, [3])
    sinks = [RecordingSink(), RecordingSink()]

    first, second = (scene.worker(f"w{number}", sink, end_us=end_us) for number, sink in enumerate(sinks))
    await until(lambda: bool(first.status.channels and second.status.channels), what="both have shards")
    await until(lambda: are_completed(first, second), what="both are completed")
    first.drain()
    await scene.tasks["w0"]
    await until(lambda: len(second.status.channels) == 5 and are_completed(second), what="the second has every shard")

    assert {number for sink in sinks for _, number in sink.written} == {1, 2}


async def test_children_that_have_no_lease_as_yet_are_not_taken_for_read(scene: FollowScene) -> None:
    """The worker reads the parent to its end while the service does not say which children it has."""
    await scene.begin()
    await scene.put(KEYS, [1])
    sink, is_silent = RecordingSink(), True
    worker = scene.worker("w", sink, end_us=now_us(scene) + 60_000_000)
    await until(lambda: len(sink.written) == len(KEYS), what="the parent is read")

    async def without_shards(request: HttpRequest) -> HttpResponse:
        if is_silent and "DescribeStream" in request.path:
            return HttpResponse(503, {}, b"")
        return await scene.emulator.handle(request)

    scene.answers["w"] = without_shards
    scene.split()
    await scene.put(KEYS, [2])
    for _ in range(120):
        await asyncio.sleep(1)
        assert not are_completed(worker)

    is_silent = False
    await until(lambda: are_completed(worker), 300, "completed")
    assert len(sink.written) == 2 * len(KEYS)
