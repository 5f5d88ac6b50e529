"""The end of the process of `ots-tunnel run`."""

from __future__ import annotations

import subprocess
import sys

from tests.support.programs.processes import bare_environment

PROGRAM = """
import atexit, threading
from ots_tunnel.commands.leaving import leave

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
