"""A table of leases that is deleted, and every checkpoint with it: nothing is left out in silence."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from ots_tunnel.errors import LeaseTableNotFound
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.stream.following.settings import FollowSettings
from tests.support.emulator.follow_scene import KEYS, LEASES, FollowScene, following
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime


@pytest.fixture
async def scene() -> AsyncIterator[FollowScene]:
    async with following() as made:
        yield made


def from_now(scene: FollowScene) -> FollowSettings:
    """Latest, as of a worker that starts at this moment."""
    return FollowSettings(start_us=int(scene.clock.now() * 1e6), starts_anew=True)


async def delete_lease_table(scene: FollowScene) -> None:
    await scene.caller.call(TABLE_OPERATIONS["DeleteTable"], pb.DeleteTableRequest(table_name=LEASES))


async def test_a_table_that_another_worker_creates_again_ends_the_one_that_had_leases(scene: FollowScene) -> None:
    """The next worker begins with the newest change, so the changes that the first one has not read are left out."""
    await scene.begin()
    sink = RecordingSink()
    scene.worker("first", sink, from_now(scene))
    await scene.put(KEYS, [1])
    await until(lambda: {(key, 1) for key in KEYS} <= set(sink.written))

    async def slow(request: HttpRequest) -> HttpResponse:
        await asyncio.sleep(30 if request.path == "/GetStreamRecord" else 0)
        return await scene.emulator.handle(request)

    scene.answers["first"] = slow
    await scene.put(KEYS, [2])
    await asyncio.sleep(1)
    await delete_lease_table(scene)
    scene.worker("second", sink, from_now(scene))
    await asyncio.sleep(1)
    await scene.put(KEYS, [3])

    with pytest.raises(LeaseTableNotFound, match="was deleted, and another one was created"):
        await asyncio.wait_for(scene.tasks["first"], 60)
    await until(lambda: {(key, 3) for key in KEYS} <= set(sink.written))
    assert (KEYS[0], 2) not in sink.written


async def test_workers_that_begin_together_find_the_table_of_their_start_in_every_round(scene: FollowScene) -> None:
    await scene.begin()
    sink = RecordingSink()
    for name in ("a", "b", "c"):
        scene.worker(name, sink)
    await scene.put(KEYS, [1])
    await asyncio.sleep(60)

    assert not any(task.done() for task in scene.tasks.values())


LEFT_OUT = (
    "the stream has no lease yet, and it has changes before 2023-11-14T23:13:20+00:00: they are left out, read before "
    "or not"
)
BEGINS = "the stream has no lease yet: reading begins at 2023-11-14T23:13:20+00:00"


@pytest.mark.parametrize(
    ("start", "has_changes", "told"),
    [
        ("newest", True, [("WARNING", LEFT_OUT)]),
        ("newest", False, [("INFO", BEGINS)]),
        ("time", True, [("INFO", BEGINS)]),
        ("oldest", True, []),
    ],
)
async def test_a_worker_that_finds_no_lease_warns_of_what_it_leaves_out(
    scene: FollowScene, caplog: pytest.LogCaptureFixture, start: str, has_changes: bool, told: list[tuple[str, str]]
) -> None:
    await scene.begin()
    if has_changes:
        await scene.put(KEYS, [1])
    scene.clock.advance(3600)
    settings = FollowSettings() if start == "oldest" else replace(from_now(scene), starts_anew=start == "newest")
    with caplog.at_level(logging.INFO):
        for name in ("first", "second"):
            worker = scene.worker(name, RecordingSink(), settings)
            await until(lambda worker=worker: worker.status.client_id is not None)

    found = [record for record in caplog.records if record.action == LogAction.FIRST_LEASES]
    assert [(record.levelname, record.getMessage()) for record in found] == told
