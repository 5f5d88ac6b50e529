"""Calls in threads on virtual time; each story in an interpreter whose clocks are replaced."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
#: Two processes sleep in a thread, one of them is killed meanwhile; a third one sleeps in its event loop.
PROGRAM = """
import asyncio, json, random, time
from tests.simulation.machine import determinism
determinism.install()
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.process import Process

told = []

def call(name):
    began = time.monotonic()
    time.sleep(30)
    told.append([name, round(time.monotonic() - began, 3)])
    return "result"

async def in_thread(name):
    told.append([name, await asyncio.to_thread(call, name)])

async def in_loop():
    try:
        time.sleep(1)
    except determinism.BlockingSleep:
        told.append(["loop", "refused"])

async def story(loop):
    killed = Process(loop, "killed", random.Random(1))
    Process(loop, "sleeps", random.Random(2)).start(in_thread("sleeps"))
    killed.start(in_thread("killed"))
    await asyncio.sleep(10)
    killed.kill()
    Process(loop, "loop", random.Random(3)).start(in_loop())
    await asyncio.sleep(60)

loop = VirtualLoop(random.Random(0))
loop.run_until_complete(story(loop))
print(json.dumps(told))
"""


def test_a_call_in_a_thread_sleeps_on_virtual_time_while_the_loop_runs_on() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, cwd=ROOT, env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, timeout=50, check=False
    )

    assert done.returncode == 0, done.stderr
    told: list[Any] = json.loads(done.stdout)
    assert told == [["loop", "refused"], ["sleeps", 30.0], ["sleeps", "result"]]
