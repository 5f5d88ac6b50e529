"""The end of the process of `ots-tunnel run`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ots_tunnel.console.exit_codes import OTHER_ERROR
from tests.support.programs.processes import bare_environment

PROGRAM = """
import atexit, threading
from ots_tunnel.commands.worker_process.leaving import leave

def work():
    threading.main_thread().join(0.2)
    print("the work is done")

atexit.register(print, "the exit function has run")
threading.Thread(target=work).start()
leave(4)
"""


INTERRUPTED = """
import os, signal, threading
from ots_tunnel.commands.worker_process.leaving import leave

def work():
    threading.main_thread().join(0.2)
    os.kill(os.getpid(), signal.{signal})
    threading.main_thread().join(0.2)

threading.Thread(target=work).start()
leave(4)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_during_the_end_costs_no_exit_code(name: str) -> None:
    program = INTERRUPTED.format(signal=name)

    ended = subprocess.run(
        [sys.executable, "-c", program], env=bare_environment(), capture_output=True, text=True, timeout=30
    )

    assert (ended.returncode, ended.stderr) == (4, "")


STARTING = """
import atexit, os, signal, subprocess, sys
from ots_tunnel.commands.worker_process.leaving import leave

def at_exit():
    print(subprocess.run(
        [sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGTERM))"], capture_output=True, text=True
    ).stdout.strip())
    child = os.fork()
    if not child:
        signal.pause()
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

atexit.register(at_exit)
leave(4)
"""


def test_programs_and_children_that_exit_functions_start_end_by_signals() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STARTING], env=bare_environment(), capture_output=True, text=True, timeout=30
    )

    assert (ended.returncode, ended.stderr) == (4, "")
    assert ended.stdout == f"0\n{-signal.SIGTERM}\n"


def test_threads_and_exit_functions_of_the_users_code_have_their_end() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=bare_environment(), capture_output=True, text=True, timeout=30
    )

    assert (ended.returncode, ended.stderr) == (4, "")
    assert ended.stdout == "the work is done\nthe exit function has run\n"


#: In the place of a stream, around a file that is closed.
TEE = """
class Tee:
    def flush(self):
        raise {error}
sys.stdout = Tee()
"""


@pytest.mark.parametrize(
    "without",
    [
        "sys.stdout.close()",
        "sys.stdout = None",
        "sys.stderr = None",
        "sys.stdout = object()",
        "sys.stdout.detach()",
        TEE.format(error="ValueError('I/O operation on closed file.')"),
        TEE.format(error="SystemExit(7)"),
    ],
    ids=[
        "closed",
        "no standard output",
        "no standard error",
        "an object without anything of a stream",
        "one that says of nothing whether it is closed",
        "one that fails",
        "one that exits",
    ],
)
def test_a_stream_that_is_not_there_costs_no_exit_code(without: str) -> None:
    """A program that is started without one (`>&-`) has None in its place; the user's code may have closed it."""
    program = f"import sys\nfrom ots_tunnel.commands.worker_process.leaving import leave\n{without}\nleave(4)\n"

    ended = subprocess.run(
        [sys.executable, "-c", program], env=bare_environment(), capture_output=True, text=True, timeout=30
    )

    assert (ended.returncode, ended.stderr) == (4, "")


HANGING = """
import asyncio, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from ots_tunnel.commands.worker_process.process import run_and_leave
from ots_tunnel.console.explanations import Place
from ots_tunnel.errors import SinkRejected

def begin(last_resort):
    last_resort.seconds = 0.5
    async def run():
        {hang}
        raise SinkRejected("Any", "no")
    return Place("http://h", "i", "keys", "t"), run()

run_and_leave(begin, "INFO", Path({log!r}))
"""


def left(program: str, hang: str, folder: Path) -> tuple[subprocess.CompletedProcess[str], Path]:
    """A worker's process that has ended, and its termination message."""
    log = folder / "termination-log"
    log.touch()
    ended = subprocess.run(
        [sys.executable, "-c", program.format(hang=hang, log=str(log))],
        env=bare_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ended, log


@pytest.mark.parametrize(
    "hang",
    [
        "ThreadPoolExecutor(1).submit(time.sleep, 3600)",
        "asyncio.get_running_loop().run_in_executor(None, time.sleep, 3600)",
    ],
    ids=["a pool of the user's code", "the pool of asyncio"],
)
def test_a_thread_that_hangs_costs_neither_the_end_nor_its_reason(hang: str, tmp_path: Path) -> None:
    ended, log = left(HANGING, hang, tmp_path)

    assert ended.returncode == 4, ended.stderr
    assert [json.loads(line)["action"] for line in ended.stderr.splitlines()] == ["terminal_error", "drain_overdue"]
    assert log.read_text().startswith("SinkRejected: ")


EXITING = """
import asyncio, sys, threading, time
from pathlib import Path
from ots_tunnel.commands.worker_process.process import run_and_leave
from ots_tunnel.console.explanations import Place

async def task():
    {hang}
    sys.exit(0)

def begin(last_resort):
    last_resort.seconds = 0.5
    async def run():
        await asyncio.create_task(task())
    return Place("http://h", "i", "keys", "t"), run()

run_and_leave(begin, "INFO", Path({log!r}))
"""


@pytest.mark.parametrize(
    "hang",
    ["pass", "asyncio.get_running_loop().run_in_executor(None, time.sleep, 3600)"],
    ids=["alone", "beside a thread that hangs"],
)
def test_a_task_of_the_users_code_that_exits_is_no_end_in_good_order(hang: str, tmp_path: Path) -> None:
    ended, _ = left(EXITING, hang, tmp_path)

    assert ended.returncode == OTHER_ERROR, ended.stderr


FORKING = """
import asyncio, os, sys, threading
from pathlib import Path
from ots_tunnel.commands.worker_process.ending import Ending
from ots_tunnel.commands.worker_process.process import run_and_leave
from ots_tunnel.console.explanations import Place

async def echo(reader, writer):
    writer.write(await reader.read(1))
    writer.close()

async def task():
    child = os.fork()
    if not child:
        {leaves}
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == {code}

def begin(last_resort):
    async def run():
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            await asyncio.create_task(task())
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"x")
            assert await asyncio.wait_for(reader.read(1), 10) == b"x"
            writer.close()
        came = asyncio.get_running_loop().create_future()
        threading.Timer(0.1, asyncio.get_running_loop().call_soon_threadsafe, (came.set_result, None)).start()
        await asyncio.wait_for(came, 10)
        return Ending(0)
    return Place("http://h", "i", "keys", "t"), run()

run_and_leave(begin, "INFO", Path({log!r}))
"""


@pytest.mark.parametrize(
    ("leaves", "code"),
    [
        ("sys.exit(3)", 3),
        ("sys.exit()", 0),
        ("sys.exit('words')", OTHER_ERROR),
        ("raise ValueError('in the child')", OTHER_ERROR),
        ("return await asyncio.sleep(0)", OTHER_ERROR),
    ],
    ids=["exit", "exit without a code", "exit with words", "exception", "nothing"],
)
def test_a_forked_child_that_leaves_the_run_leaves_its_parents_loop_and_message_alone(
    leaves: str, code: int, tmp_path: Path
) -> None:
    """What the child closed was taken out of the set of descriptors that both loops wait for."""
    log = tmp_path / "termination-log"
    log.touch()
    program = FORKING.format(leaves=leaves, code=code, log=str(log))

    ended = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        env=bare_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (ended.returncode, log.read_text()) == (0, ""), ended.stderr
    assert "terminal_error" not in ended.stderr
