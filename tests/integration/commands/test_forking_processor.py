"""`run` with code of the user's that forks processes, or that exits."""

from __future__ import annotations

from pathlib import Path

import pytest

from ots_tunnel.console.exit_codes import OTHER_ERROR
from ots_tunnel.model import TunnelType
from tests.support.emulator.emulator_scene import twenty_rows
from tests.support.programs.processes import bare_environment
from tests.support.programs.run_process import Left, document, ended, start

PROCESSORS = """
import asyncio, multiprocessing, os, sys
from pathlib import Path
from ots_tunnel.processor import SimpleProcessorFactory

def pooled():
    def process(context, records):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            counts = pool.map(len, [records[:10], records[10:]])
        with Path(__file__).with_name("counted").open("a") as out:
            out.write(f"{sum(counts)}\\n")
    return SimpleProcessorFactory(process)

def exiting():
    async def process(context, records):
        tasks.append(asyncio.create_task(leave()))
    return SimpleProcessorFactory(process)

def returning():
    def process(context, records):
        count(records, fork())
    return SimpleProcessorFactory(process)

def returning_coroutine():
    async def process(context, records):
        count(records, fork())
    return SimpleProcessorFactory(process)

def making():
    fork()
    return SimpleProcessorFactory(lambda context, records: count(records, True))

def failing():
    if not fork():
        raise ValueError("in a child")
    return SimpleProcessorFactory(lambda context, records: count(records, True))

def fork():
    # whether this is the parent of a child that has ended as one that goes on does
    child = os.fork()
    return child and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5

def count(records, is_counted):
    with Path(__file__).with_name("counted").open("a") as out:
        out.write(f"{len(records) * is_counted}\\n")

tasks = []

async def leave():
    sys.exit(0)
"""


async def run(tmp_path: Path, factory: str) -> Left:
    """The end of a run that is to read twenty existing rows and to end then."""
    (tmp_path / "processors.py").write_text(PROCESSORS)
    async with twenty_rows(TunnelType.BaseData) as scene:
        path = document(scene, tmp_path, f"python: {{factory: 'processors:{factory}'}}", client__drainSeconds=4)
        process = await start(path, "--exit-when-complete", environment=bare_environment(tmp_path))
        return await ended(process, path)


async def test_a_pool_that_is_terminated_is_no_order_to_drain(tmp_path: Path) -> None:
    left = await run(tmp_path, "pooled")

    assert (left.code, left.termination_message) == (0, "")
    assert sum(map(int, (tmp_path / "counted").read_text().split())) == 20


@pytest.mark.parametrize("factory", ["returning", "returning_coroutine", "making", "failing"])
async def test_a_child_that_goes_on_as_the_worker_ends_and_the_worker_goes_on(factory: str, tmp_path: Path) -> None:
    left = await run(tmp_path, factory)

    assert (left.code, left.termination_message) == (0, ""), left.lines
    assert sum(map(int, (tmp_path / "counted").read_text().split())) == 20


async def test_a_task_that_exits_is_told(tmp_path: Path) -> None:
    left = await run(tmp_path, "exiting")

    assert left.code == OTHER_ERROR
    assert left.termination_message == "SystemExit: 0\n"
