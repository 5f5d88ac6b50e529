"""Files of a worker that is killed again and again: every record once, in order, and no part of a file."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.model import TunnelType
from tests.support.emulator.emulator_scene import EmulatorScene
from tests.support.programs.worker_process import KEYS, keep_writing, worker_processes
from tests.support.waiting import until


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    async with Emulator(settings=Settings(page_rows=50, init_delay=0.01)) as emulator:
        yield EmulatorScene(emulator)


def records_of(folder: Path) -> dict[str, list[dict[str, object]]]:
    """Records of every channel, files by name."""
    found: dict[str, list[dict[str, object]]] = {}
    for path in sorted(folder.glob("*/*/*.jsonl")):
        lines = path.read_text().splitlines()
        assert f".{len(lines)}." in path.name
        found.setdefault(path.parent.name, []).extend(json.loads(line) for line in lines)
    return found


def changes_published(folder: Path) -> int:
    """Number of the stream's records, by the file names: the files may be replaced at this moment."""
    return sum(int(path.name.split(".")[1]) for path in folder.glob("*/*/*-*.jsonl"))


def left_over(folder: Path) -> list[Path]:
    return list(folder.rglob(".filling-*"))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 11))])
@pytest.mark.timeout(180)
@pytest.mark.lasts(18)
async def test_files_of_a_killed_worker_hold_every_record_once(scene: EmulatorScene, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    await scene.create_table(partitions=2)
    await scene.put([f"base{number:05}" for number in range(3000)])
    await scene.create_tunnel(TunnelType.BaseAndStream)
    await scene.put(KEYS)
    stop = asyncio.Event()

    def published() -> int:
        return sum(1 for _ in tmp_path.glob("*/*/*.jsonl"))

    async with worker_processes(scene, str(tmp_path)) as spawn, asyncio.TaskGroup() as tasks:
        worker = await spawn()
        writing = tasks.create_task(keep_writing(scene, stop, chance))
        for _ in range(3):
            aim = published() + chance.randint(2, 6)
            await until(lambda aim=aim: published() >= aim, 40, "more files")
            await asyncio.sleep(chance.uniform(0, 0.4))
            worker.kill()
            await worker.wait()
            worker = await spawn()
        stop.set()
        await writing
        expected = sum(len(scene.written[key]) for key in KEYS)
        await until(lambda: changes_published(tmp_path) >= expected, 60, "everything")

    found = records_of(tmp_path)
    stream = {channel: records for channel, records in found.items() if records[0]["sequence"] is not None}
    base = [record["key"]["pk"] for channel, records in found.items() if channel not in stream for record in records]
    changes = Counter(record["key"]["pk"] for records in stream.values() for record in records)
    assert len(base) == len(set(base))
    assert set(base) >= {f"base{number:05}" for number in range(3000)}
    assert changes == Counter({key: len(scene.written[key]) for key in KEYS})
    for records in stream.values():
        positions = [record["sequence"] for record in records]
        assert positions == sorted(positions)
    assert left_over(tmp_path) == []
