"""`run` with code of the user's that does not return."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ots_tunnel.commands.worker_process.last_resort import OVERDUE_AFTER
from ots_tunnel.console.exit_codes import OTHER_ERROR
from ots_tunnel.model import TunnelType
from tests.support.emulator.emulator_scene import EmulatorScene, twenty_rows
from tests.support.programs.processes import bare_environment
from tests.support.programs.run_process import document, ended, start
from tests.support.waiting import until

#: Both hang from their first page on, which a file tells.
PROCESSORS = """
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from ots_tunnel.processor import SimpleProcessorFactory

pool = ThreadPoolExecutor(1)

def hang():
    Path(__file__).with_name("hangs").touch()
    time.sleep(3600)

def in_a_thread():
    def process(context, records):
        pool.submit(hang)
    return SimpleProcessorFactory(process)

def in_the_loop():
    async def process(context, records):
        hang()
    return SimpleProcessorFactory(process)
"""
DRAIN_SECONDS = 4


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    async with twenty_rows(TunnelType.BaseAndStream) as scene:
        yield scene


@pytest.mark.parametrize(
    ("factory", "code"),
    [pytest.param("in_a_thread", 0, id="thread"), pytest.param("in_the_loop", OTHER_ERROR, id="event-loop")],
)
async def test_the_process_ends_behind_the_drain_whatever_hangs(
    scene: EmulatorScene, tmp_path: Path, factory: str, code: int
) -> None:
    """The channels of the first one are handed back in time, which is what its exit code says."""
    (tmp_path / "processors.py").write_text(PROCESSORS)
    sink = f"python: {{factory: 'processors:{factory}'}}"
    path = document(scene, tmp_path, sink, client__drainSeconds=DRAIN_SECONDS)
    process = await start(path, environment=bare_environment(tmp_path))
    await until((tmp_path / "hangs").exists, what="the processor hangs")
    began = time.monotonic()

    process.terminate()
    left = await ended(process, path)

    assert (left.code, left.lines[-1]["action"]) == (code, "drain_overdue")
    assert time.monotonic() - began < DRAIN_SECONDS + OVERDUE_AFTER + 15
