"""Records of one commit with one time, as an atomic batch may have: pages, checkpoints and end times between them."""

from __future__ import annotations

import asyncio

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.model import Action, TunnelType
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene
from tests.support.sinks.sinks import RecordingSink, check_order
from tests.support.waiting import until

KEYS = [f"k{number:03}" for number in range(60)]
NUMBERS = range(1, 6)
EVERYTHING = [(key, number) for key in KEYS for number in NUMBERS]


async def put_together(scene: EmulatorScene, key: str) -> None:
    """Write all numbers to a key in one atomic batch."""
    request = pb.BatchWriteRowRequest(is_atomic=True)
    batch = request.tables.add(table_name=TABLE)
    for number in NUMBERS:
        row = encode_row((("pk", key),), (Column("n", number),))
        batch.rows.add(type=Action.PUT.name, row_change=row, condition=pb.Condition(row_existence=pb.IGNORE))
    answer, *_ = await scene.caller.call(TABLE_OPERATIONS["BatchWriteRow"], request)
    assert all(row.is_ok for row in answer.tables[0].rows)


def commit_times(scene: EmulatorScene) -> list[int]:
    log = scene.emulator.instances["demo"].tables[TABLE].log
    assert log is not None
    return sorted({time_us for partition in log.partitions.values() for time_us in partition.times_us})


@pytest.fixture
async def scene() -> EmulatorScene:
    # Pages, and so checkpoints, end in the middle of a commit.
    settings = Settings(page_rows=7, init_delay=0.01, one_time_per_commit=True, partition_rows=16)
    scene = EmulatorScene(Emulator(settings=settings))
    await scene.create_table(partitions=2)
    await scene.create_tunnel(TunnelType.Stream)
    for key in KEYS:
        await put_together(scene, key)
    assert len(commit_times(scene)) == len(KEYS)
    return scene


@pytest.mark.parametrize(("after_us", "commits"), [(-1, 30), (0, 31)])
async def test_an_end_time_takes_a_commit_as_a_whole_or_not_at_all(
    scene: EmulatorScene, after_us: int, commits: int
) -> None:
    end_us = commit_times(scene)[30] + after_us
    first, second = RecordingSink(), RecordingSink()

    await asyncio.wait_for(scene.worker(first, end_us=end_us, exit_when_complete=True, timeout=10).run(), 20)

    assert sorted(first.written) == EVERYTHING[: commits * len(NUMBERS)]
    check_order(first.written)
    # What is left is delivered once the end time is gone; the page with the end time comes again.
    async with scene.running(scene.worker(second, timeout=10)):
        await until(lambda: {*first.written, *second.written} == {*EVERYTHING})
    check_order(second.written)


async def test_a_worker_resumes_within_a_commit(scene: EmulatorScene) -> None:
    written: list[tuple[str, int]] = []
    while len(written) < len(EVERYTHING):
        sink = RecordingSink()
        before = len(written)
        async with scene.running(scene.worker(sink, timeout=10)):
            await until(lambda sink=sink, before=before: len(sink.written) >= min(40, len(EVERYTHING) - before))
        written += sink.written

    assert sorted(written) == EVERYTHING
    check_order(written)
