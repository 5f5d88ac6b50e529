"""Worker processes that die or are paused beyond the timeout: nothing is lost, no old write replaces a newer one."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from ots_emulator import Emulator, Settings
from ots_emulator.server.faults import FaultRule
from ots_tunnel.model import FINISHED, Token, TunnelId, TunnelType
from ots_tunnel.verify.compare import compare_tables
from tests.support.emulator.emulator_scene import COPY, TABLE, EmulatorScene
from tests.support.programs.worker_process import KEYS, keep_writing, worker_processes
from tests.support.waiting import until


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    emulator = Emulator(settings=Settings(page_rows=50, init_delay=0.01))
    # Writes take a while, so that one is always under way.
    emulator.faults.add(FaultRule(operation="BatchWriteRow", latency=0.02))
    async with emulator:
        yield EmulatorScene(emulator)


async def wait_for_copy(scene: EmulatorScene) -> None:
    """Wait until everything written so far was consumed; then the tables must be equal, cell by cell."""
    now_ns = time.time_ns()
    tunnel = scene.emulator.tunnel("demo", scene.tunnel_id)
    await until(lambda: tunnel.consume_point_ns() > now_ns, 30, "caught up")
    comparison = await compare_tables(scene.table, TABLE, scene.table, COPY)
    assert comparison.equal, comparison


class CopyLog:
    """Every change of the copy, in order, read from its own stream."""

    def __init__(self, scene: EmulatorScene, tunnel_id: TunnelId) -> None:
        self._scene = scene
        self._tunnel_id = tunnel_id
        self._tokens: dict[str, Token] = {}
        self.changes: list[tuple[str, int]] = []

    async def read(self) -> list[tuple[str, int]]:
        """All changes so far."""
        client = self._scene.client
        for channel in (await client.describe_tunnel(COPY, "log")).channels:
            ids = (self._tunnel_id, "", channel.channel_id)
            token = self._tokens.get(channel.channel_id) or (await client.get_checkpoint(*ids)).token
            while token != FINISHED:
                page = await client.read_records(*ids, token)
                token = page.next_token
                self.changes += [(str(r.primary_key[0][1]), int(r.columns[0].value)) for r in page.records]
                if not page.records:
                    break
            self._tokens[channel.channel_id] = token
        return self.changes


async def prepare(scene: EmulatorScene, kind: TunnelType) -> CopyLog:
    await scene.create_table(partitions=2)
    await scene.create_table(table=COPY)
    log = CopyLog(scene, await scene.client.create_tunnel(COPY, "log", TunnelType.Stream))
    if kind is TunnelType.BaseAndStream:
        await scene.put([f"base{number:05}" for number in range(3000)])
    await scene.create_tunnel(kind)
    await scene.put(KEYS)
    return log


def most_steps_back(changes: list[tuple[str, int]]) -> int:
    """Most times that any key went back to an older number."""
    last: dict[str, int] = {}
    back: dict[str, int] = defaultdict(int)
    for key, number in changes:
        if number < last.get(key, 0):
            back[key] += 1
        last[key] = number
    return max(back.values(), default=0)


def allowed_steps_back(kind: TunnelType) -> int:
    """One rewind to the durable checkpoint, and one from the base data to the stream behind it."""
    return 2 if kind is TunnelType.BaseAndStream else 1


async def some_progress(log: CopyLog, changes: int) -> None:
    async def is_enough() -> bool:
        return len(await log.read()) >= changes

    await until(is_enough, 60, f"{changes} changes of the copy", pause=0.05)


@dataclass(frozen=True)
class Run:
    """A run whose worker is struck after a number of changes of the copy."""

    kind: TunnelType
    seed: int
    changes: int

    @classmethod
    def of(cls, kind: TunnelType, seed: int) -> Run:
        """The run of a seed; seed 0 strikes early, during the base data if there is any, other seeds at any time."""
        return cls(kind, seed, random.Random(seed).randint(50, 5000) if seed else 300)


#: BaseAndStream is struck during base data or stream, Stream during the stream.
RUNS = [
    pytest.param(Run.of(kind, seed), id=f"{kind.name}-{seed}", marks=[pytest.mark.long] if seed else [])
    for kind in (TunnelType.BaseAndStream, TunnelType.Stream)
    for seed in range(11)
]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.timeout(300)
@pytest.mark.lasts(9)
async def test_a_killed_worker_is_replaced_and_nothing_is_lost(scene: EmulatorScene, run: Run) -> None:
    log = await prepare(scene, run.kind)
    stop = asyncio.Event()

    async with worker_processes(scene, COPY) as spawn, asyncio.TaskGroup() as tasks:
        first = await spawn()
        writing = tasks.create_task(keep_writing(scene, stop, random.Random(run.seed)))
        await some_progress(log, run.changes)
        first.kill()
        await spawn()
        await until(lambda: bool(scene.owners()), 60, "taken over")
        await asyncio.sleep(0.5)
        stop.set()
        await writing
        await wait_for_copy(scene)

    assert most_steps_back(await log.read()) <= allowed_steps_back(run.kind)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.timeout(300)
@pytest.mark.lasts(15)
async def test_a_paused_worker_writes_nothing_old_when_it_wakes(scene: EmulatorScene, run: Run) -> None:
    log = await prepare(scene, run.kind)
    stop = asyncio.Event()

    async with worker_processes(scene, COPY) as spawn, asyncio.TaskGroup() as tasks:
        first = await spawn()
        writing = tasks.create_task(keep_writing(scene, stop, random.Random(run.seed)))
        await some_progress(log, run.changes)
        asleep = set(scene.owners())
        first.send_signal(signal.SIGSTOP)
        await spawn()
        await until(lambda: bool(scene.owners()) and not asleep & set(scene.owners()), 60, "taken over")
        stop.set()
        await writing
        await wait_for_copy(scene)
        before = len(await log.read())
        first.send_signal(signal.SIGCONT)
        await until(
            lambda: len(set(scene.owners())) == 2 and not asleep & set(scene.owners()), 60, "back with a new client"
        )

        after = await log.read()
        assert after[before:] == []
        first.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(first.wait(), 60) == 0

    assert most_steps_back(after) <= allowed_steps_back(run.kind)
