"""CPU seconds of a process and of all that it has started, by program: a session is Python, a JVM, and Python again."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")


class Cpu(NamedTuple):
    """CPU seconds so far; `python` is the part of interpreters.

    What an interpreter used is its parent's once it has ended, so what has ended under a JVM is theirs: the planner of
    a query ends with it. The programs that Hadoop calls, such as readlink, are in it as well.
    """

    total: float
    python: float

    def since(self, before: Cpu) -> Cpu:
        """What was used since an earlier look."""
        return Cpu(self.total - before.total, self.python - before.python)


class _Process(NamedTuple):
    parent: int
    name: str
    own: float
    ended: float


def cpu_of_tree(pid: int, proc: Path = Path("/proc")) -> Cpu:
    """CPU seconds of a process and its descendants, those that have ended and were waited for included."""
    processes = dict(_processes(proc))
    children: Mapping[int, list[int]] = defaultdict(list)
    for each, process in processes.items():
        children[process.parent].append(each)
    total = python = 0.0
    left = [pid]
    while left:
        each = left.pop()
        left += children[each]
        if each in processes:
            found = processes[each]
            total += found.own + found.ended
            python += found.ended + (found.own if found.name.startswith("python") else 0.0)
    return Cpu(total, python)


def _processes(proc: Path) -> list[tuple[int, _Process]]:
    found = []
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text()
        except OSError:  # it has ended meanwhile
            continue
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = rest.split()
        # proc(5): state, parent, ..., utime, stime, cutime, cstime
        own, ended = (sum(map(int, fields[start : start + 2])) / _TICKS for start in (11, 13))
        found.append((int(folder.name), _Process(int(fields[1]), name, own, ended)))
    return found
