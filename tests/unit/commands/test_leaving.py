"""The end of the process of `ots-tunnel run`."""

from __future__ import annotations

import subprocess
import sys

import pytest

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


def test_threads_and_exit_functions_of_the_users_code_have_their_end() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=bare_environment(), capture_output=True, text=True, timeout=30
    )

    assert (ended.returncode, ended.stderr) == (4, "")
    assert ended.stdout == "the work is done\nthe exit function has run\n"


@pytest.mark.parametrize(
    "without",
    ["sys.stdout.close()", "sys.stdout = None", "sys.stderr = None"],
    ids=["closed", "no standard output", "no standard error"],
)
def test_a_stream_that_is_not_there_costs_no_exit_code(without: str) -> None:
    """A program that is started without one (`>&-`) has None in its place; the user's code may have closed it."""
    program = f"import sys\nfrom ots_tunnel.commands.worker_process.leaving import leave\n{without}\nleave(4)\n"

    ended = subprocess.run(
        [sys.executable, "-c", program], env=bare_environment(), capture_output=True, text=True, timeout=30
    )

    assert (ended.returncode, ended.stderr) == (4, "")
