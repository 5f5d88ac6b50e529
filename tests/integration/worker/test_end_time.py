"""A worker with an end time: everything up to it, nothing after it, and then it is complete."""

from __future__ import annotations

import asyncio
import time

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.model import TunnelType
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene
from tests.support.sinks.sinks import RecordingSink, check_order
from tests.support.waiting import until

KEYS = [f"k{number:03}" for number in range(100)]


@pytest.fixture
def scene() -> EmulatorScene:
    return EmulatorScene(Emulator(settings=Settings(page_rows=30, init_delay=0.01)))


def now_us() -> int:
    return time.time_ns() // 1000


async def test_later_changes_are_neither_written_nor_checkpointed(scene: EmulatorScene) -> None:
    await scene.create_table(partitions=2)
    await scene.create_tunnel(TunnelType.Stream)
    await scene.put(KEYS, [1, 2, 3])
    expected = sorted(scene.everything())
    end_us = now_us()
    await asyncio.sleep(0.01)
    await scene.put(KEYS, [4, 5])
    sink = RecordingSink()
    worker = scene.worker(sink, end_us=end_us, exit_when_complete=True, timeout=10)

    await asyncio.wait_for(worker.run(), 20)

    assert sorted(sink.written) == expected
    check_order(sink.written)
    assert worker.status.completed
    assert scene.owners() == []
    # The rest is still there for a worker without an end time.
    second = RecordingSink()
    async with scene.running(scene.worker(second, timeout=10)):
        await until(lambda: {number for _, number in second.written} >= {4, 5} and len(second.written) >= 200)
    assert {row for row in second.written if row[1] > 3} == {(key, number) for key in KEYS for number in (4, 5)}


@pytest.mark.lasts(10)
async def test_a_silent_stream_ends_by_the_services_clock(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    await scene.put(KEYS)
    sink = RecordingSink()
    worker = scene.worker(sink, end_us=now_us() + 500_000, exit_when_complete=True, timeout=10)

    await asyncio.wait_for(worker.run(), 20)

    assert sorted(sink.written) == sorted(scene.everything())


async def test_children_of_a_channel_that_stopped_are_not_waited_for(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    await scene.put(KEYS)
    end_us = now_us()
    await asyncio.sleep(0.01)
    await scene.put(KEYS, [2])
    scene.emulator.split("demo", TABLE)
    await scene.put(KEYS, [3])
    sink = RecordingSink()
    worker = scene.worker(sink, end_us=end_us, exit_when_complete=True, timeout=10)

    await asyncio.wait_for(worker.run(), 20)

    assert sorted(sink.written) == [(key, 1) for key in KEYS]


async def test_a_resume_reads_the_boundary_page_again(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    await scene.put(KEYS)
    end_us = now_us()
    await asyncio.sleep(0.01)
    await scene.put(KEYS, [2])
    first, second = RecordingSink(), RecordingSink()

    await asyncio.wait_for(scene.worker(first, end_us=end_us, exit_when_complete=True, timeout=10).run(), 20)
    await asyncio.wait_for(scene.worker(second, end_us=end_us, exit_when_complete=True, timeout=10).run(), 20)

    assert sorted(first.written) == [(key, 1) for key in KEYS]
    assert second.written == first.written[90:]


@pytest.mark.lasts(10)
async def test_workers_that_are_done_do_not_wait_for_each_other(scene: EmulatorScene) -> None:
    await scene.create_table(partitions=4)
    await scene.create_tunnel(TunnelType.Stream)
    await scene.put(KEYS, [1, 2])
    end_us = now_us() + 1_000_000
    sinks = [RecordingSink() for _ in range(3)]
    workers = [scene.worker(sink, end_us=end_us, exit_when_complete=True, timeout=10) for sink in sinks]

    await asyncio.wait_for(asyncio.gather(*(worker.run() for worker in workers)), 30)

    assert {row for sink in sinks for row in sink.written} == set(scene.everything())
    assert scene.owners() == []
