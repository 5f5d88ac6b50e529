"""Processes that a command has left behind: adopted, named and ended.

A process whose parent has ended goes to the nearest ancestor that adopts orphans, on Linux by prctl(2). The test
command adopts them, because one that nobody ends takes the processor from every stage after it, and is seen by nobody.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
#: Seconds in which an orphan may end by itself.
GRACE = 10.0
_PAUSE = 0.1
_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class LeftOver:
    """One process: its command line, at most 120 characters, and the seconds of a processor that it has used."""

    command: str
    cpu_seconds: float


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends; raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def end_orphans(grace: float = GRACE) -> list[LeftOver]:
    """Wait for the children of this process, end those that are still there, and say which they were.

    To be called when no child is wanted any more.

    Args:
        grace: seconds.
    """
    deadline = time.monotonic() + grace
    while _reap() and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    found: dict[int, LeftOver] = {}
    while _reap():
        for child in _children():
            found.setdefault(child, _describe(child))
            os.kill(child, signal.SIGKILL)
        time.sleep(_PAUSE)
    return list(found.values())


def _reap() -> bool:
    """Take the exit status of the children that have ended; whether others are left."""
    while True:
        try:
            process, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if process == 0:
            return True


def _children() -> Iterator[int]:
    """The children that have not been reaped."""
    for task in (PROC / "self" / "task").iterdir():
        yield from map(int, (task / "children").read_text().split())


def _describe(process: int) -> LeftOver:
    """What is known of a child; a child stays in /proc until it is reaped."""
    folder = PROC / str(process)
    words = folder.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    name, _, rest = folder.joinpath("stat").read_text().rpartition(")")
    user, system = rest.split()[11:13]
    return LeftOver((words or name.partition("(")[2])[:120], (int(user) + int(system)) / os.sysconf("SC_CLK_TCK"))
