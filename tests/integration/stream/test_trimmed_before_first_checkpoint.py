"""Records that were read, and that the stream drops before the first checkpoint of their shard: they are missed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ots_tunnel.errors import PossibleGap
from ots_tunnel.sinks import Batch, Guard
from ots_tunnel.stream.following.settings import FollowSettings
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
