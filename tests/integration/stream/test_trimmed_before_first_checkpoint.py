"""Records that were read, and that the stream drops before the first checkpoint of their shard: they are missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ots_tunnel.errors import PossibleGap
from ots_tunnel.sinks import Batch, Guard
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.processing.processor import InitializationInput, ProcessRecordsInput, ShutdownInput
from tests.support.emulator.emulator_scene import TABLE
from tests.support.emulator.follow_scene import KEYS, FollowScene, following
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime


class Broken(RecordingSink):
    """Writes nothing, for now."""

    failures = 0

    async def write(self, batch: Batch, guard: Guard) -> None:
        self.failures += 1
        raise RuntimeError("broken")


@pytest.fixture
async def scene() -> AsyncIterator[FollowScene]:
    async with following() as made:
        yield made


async def read_and_lose(scene: FollowScene, follow: FollowSettings | None = None) -> None:
    """A worker has read a shard's first records and cannot write them, until the stream drops them."""
    await scene.begin()
    await scene.put(KEYS, [1])
    sink = Broken()
    worker = scene.worker("w", sink, follow)
    await until(lambda: sink.failures, what="the records were read")
    worker.drain()
    await scene.tasks["w"]
    scene.emulator.trim("demo", TABLE)
    await scene.put(KEYS, [2])


async def test_the_next_worker_stops(scene: FollowScene) -> None:
    await read_and_lose(scene)

    for name in ("x", "y"):
        sink = RecordingSink()
        scene.worker(name, sink)
        with pytest.raises(PossibleGap, match="may be missing"):
            await scene.tasks[name]
        assert sink.written == []


async def test_the_next_worker_goes_on_where_the_settings_say_so(scene: FollowScene) -> None:
    goes_on = FollowSettings(stops_at_gaps=False)
    await read_and_lose(scene, goes_on)

    sink = RecordingSink()
    worker = scene.worker("x", sink, goes_on)
    await until(lambda: {(key, 2) for key in KEYS} <= set(sink.written))

    assert [gap["channel"] for gap in worker.status.document()["possibleGaps"]] == list(await scene.leases())


class Silent:
    """A processor that never stores a checkpoint, and its factory."""

    def __init__(self, *, stores_at_the_end: bool = False) -> None:
        self.given = 0
        self._stores_at_the_end = stores_at_the_end

    async def create_processor(self) -> Silent:
        return self

    async def initialize(self, given: InitializationInput) -> None:
        pass

    async def process_records(self, given: ProcessRecordsInput) -> None:
        self.given += len(given.records)
        if self._stores_at_the_end and given.records:
            raise RuntimeError("broken")

    async def shutdown(self, given: ShutdownInput) -> None:
        if self._stores_at_the_end:
            await given.checkpointer.checkpoint()


@pytest.mark.parametrize("stores_at_the_end", [False, True], ids=["no checkpoint", "one before what has failed"])
async def test_the_next_processor_misses_them_as_well(scene: FollowScene, stores_at_the_end: bool) -> None:
    await scene.begin()
    await scene.put(KEYS, [1])
    first = Silent(stores_at_the_end=stores_at_the_end)
    worker = scene.processors("w", first)
    await until(lambda: first.given, what="the records were given")
    worker.shutdown()
    await scene.tasks["w"]
    scene.emulator.trim("demo", TABLE)
    await scene.put(KEYS, [2])

    second = Silent()
    scene.processors("x", second)
    with pytest.raises(PossibleGap, match="may be missing"):
        await asyncio.wait_for(scene.tasks["x"], 60)
    assert not second.given
