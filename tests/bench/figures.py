"""Figures from runs: the stretch between two points of a run, medians, quantiles, and the rows of `bench.json`."""

from __future__ import annotations

import json
import math
import resource
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.bench.consumers import Report
from tests.bench.programs.milestone_worker import Point

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """One run from its mark to its end; start and just-in-time compilation are before the mark."""

    begin: Point
    end: Point
    resident_mb: float

    @classmethod
    def of(cls, report: Report) -> Self:
        """The stretch of a run that had a mark.

        Raises:
            RuntimeError: the worker did not report the mark, or the mark was its end.
        """
        if report.marked is None or report.last is None or report.last.rows <= report.marked.rows:
            raise RuntimeError(f"there are no rows between the mark {report.marked} and the end {report.last}")
        return cls(report.marked, report.last, report.resident_mb)

    @property
    def rows(self) -> int:
        return self.end.rows - self.begin.rows

    @property
    def cpu_per_million(self) -> float:
        """CPU seconds per million rows."""
        return (self.end.cpu_seconds - self.begin.cpu_seconds) / self.rows * MILLION

    @property
    def taken_per_row(self) -> float:
        """Bytes of memory that the kernel has given for each row, in whole pages."""
        return (self.end.faults - self.begin.faults) * resource.getpagesize() / self.rows

    @property
    def rows_per_second(self) -> float:
        """Rows per second of wall time; includes waiting for the emulator."""
        return self.rows / max(self.end.seconds - self.begin.seconds, 1e-3)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line: ours beside a peer's.

    Args:
        goal: the least `ratio`, or None.
        less_is_better: True for costs and times, False for rates.
    """

    name: str
    ours: float
    peer: float
    unit: str
    goal: float | None = None
    less_is_better: bool = True

    @property
    def ratio(self) -> float:
        """How many times better ours is; 1 means equal."""
        better, worse = (self.peer, self.ours) if self.less_is_better else (self.ours, self.peer)
        return better / worse if worse else math.inf

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        return None if self.goal is None else self.ratio >= self.goal

    def document(self) -> dict[str, Any]:
        """The entry in `bench.json`."""
        return {
            "name": self.name,
            "ours": round(self.ours, 3),
            "peer": round(self.peer, 3),
            "unit": self.unit,
            "ratio": round(self.ratio, 3),
            "goal": self.goal,
            "met": self.met,
        }


class Rounds:
    """The numbers of rounds, from 1 on; none begins that would end too late if it took as long as the one before.

    Args:
        wanted: rounds, 1 or more.
        seconds: that all rounds may take.
        clock: seconds.
    """

    def __init__(self, wanted: int, seconds: float, clock: Callable[[], float]) -> None:
        self._wanted = wanted
        self._seconds = seconds
        self._clock = clock
        self.begun = 0

    def __iter__(self) -> Iterator[int]:
        began = last = self._clock()
        while self.begun < self._wanted:
            now = self._clock()
            if self.begun and now - began + (now - last) > self._seconds:
                return
            self.begun, last = self.begun + 1, now
            yield self.begun


def quantile(values: Iterable[float], share: float) -> float:
    """The least value that a share of at least `share` of the values does not exceed.

    Raises:
        ValueError: there are no values.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def windows(sent: Sequence[int], delayed: Sequence[int], begin: int, length: int, count: int) -> list[list[int]]:
    """The delays of what was sent in each of `count` windows of equal length, the first of which begins at `begin`."""
    found: list[list[int]] = [[] for _ in range(count)]
    for moment, delay in zip(sent, delayed, strict=True):
        place = (moment - begin) // length
        if 0 <= place < count:
            found[place].append(delay)
    return found


def add_to_file(path: Path, documents: Iterable[dict[str, Any]]) -> None:
    """Replace the entries of the same names in the file, and keep all others."""
    lines = {line["name"]: line for line in (json.loads(path.read_text()) if path.exists() else [])}
    lines |= {document["name"]: document for document in documents}
    path.write_text(json.dumps([*lines.values()], indent=2) + "\n")
