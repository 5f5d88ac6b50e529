"""A measured emulator process: its CPU time and memory, and the goals they are compared with."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Goal:
    """One line of the table; `goal` is a lower bound if `at_least`, otherwise an upper one."""

    name: str
    ours: float
    goal: float | None
    unit: str
    at_least: bool = True

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        if self.goal is None:
            return None
        return self.ours >= self.goal if self.at_least else self.ours <= self.goal

    def document(self) -> dict[str, Any]:
        """The entry in `bench.json`; without a peer, `ratio` is our value divided by the goal, None where that is 0."""
        return {
            "name": self.name,
            "ours": round(self.ours, 3),
            "peer": None,
            "unit": self.unit,
            "ratio": round(self.ours / self.goal, 3) if self.goal else None,
            "goal": self.goal,
            "met": self.met,
        }


@dataclass(frozen=True, slots=True)
class Target:
    """The process and its data port."""

    pid: int
    port: int

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE

    def rates(self, name: str, count: int, goal: float | None, run: Callable[[], object]) -> list[Goal]:
        """Rate per second of the `count` operations of `run`: by the clock, and by the process's CPU time."""
        began, cpu = time.perf_counter(), self.cpu_seconds()
        run()
        seconds, used = time.perf_counter() - began, self.cpu_seconds() - cpu
        return [
            Goal(name, count / seconds, goal, "per second"),
            Goal(f"{name}, by CPU time", count / used, goal, "per CPU second"),
        ]
