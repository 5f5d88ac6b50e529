"""Signals that come while a process is forked."""

from __future__ import annotations

import subprocess
import sys

from tests.support.programs.processes import bare_environment

#: The hook is registered first, so it runs behind those of the package; a signal comes there, and its handler forks.
FORKING = """
import os, signal

signals = [signal.SIGUSR1]
os.register_at_fork(before=lambda: os.kill(os.getpid(), signals.pop()) if signals else None)

def fork(*_):
    child = os.fork()
    if not child:
        print(signal.pthread_sigmask(signal.SIG_BLOCK, []), flush=True)
        os._exit(0)
    os.waitpid(child, 0)

signal.signal(signal.SIGUSR1, fork)
from ots_tunnel.forks.signals import former_handlers_for_children

with former_handlers_for_children():
    fork()
    print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""


def test_a_handler_that_forks_during_a_fork_leaves_no_signal_blocked_in_any_process() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORKING], env=bare_environment(), capture_output=True, text=True, timeout=30
    )

    assert ended.stdout == 3 * "set()\n", ended.stderr  # the handler's child, the other one, their parent
