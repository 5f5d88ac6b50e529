"""Workers as processes with short times, and a writer that keeps them busy."""

from __future__ import annotations

import asyncio
import random
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

from tests.support.emulator.emulator_scene import EmulatorScene
from tests.support.programs.processes import ROOT, bare_environment, kill_all, unmeasured

PROGRAM = ROOT / "tests/support/programs/worker_program.py"
#: Seconds between two heartbeats, and until the service releases a silent client's channels.
INTERVAL, TIMEOUT = 0.5, 3.0
KEYS = [f"k{number:03}" for number in range(100)]
#: Keys that one request of the writer changes.
KEYS_AT_ONCE = 40

Spawn = Callable[[], Coroutine[None, None, Process]]


@asynccontextmanager
async def worker_processes(scene: EmulatorScene, destination: str) -> AsyncIterator[Spawn]:
    """`spawn()` starts a worker; those still alive at the end are killed.

    Args:
        destination: a table of the scene's instance, or the absolute path of a folder.
    """
    running: list[Process] = []

    async def spawn() -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(PROGRAM),
            scene.emulator.endpoint,
            scene.tunnel_id,
            destination,
            str(INTERVAL),
            str(TIMEOUT),
            env=unmeasured(bare_environment()),
        )
        running.append(process)
        return process

    try:
        yield spawn
    finally:
        await kill_all(running)


async def keep_writing(scene: EmulatorScene, stop: asyncio.Event, chance: random.Random) -> None:
    """Write rising numbers to some of `KEYS` until `stop` is set."""
    number = 1
    while not stop.is_set():
        number += 1
        await scene.put(chance.sample(KEYS, KEYS_AT_ONCE), [number])
        await asyncio.sleep(chance.uniform(0.01, 0.03))
