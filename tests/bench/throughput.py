"""The four kinds of work: count, one column, every column, copy; CPU between a mark and the end of a run.

Java needs a million rows before its compiler is done, half as many where it also writes them. A side that is cheaper
per row gets more of them, so that they stand out of the noise.
"""

from __future__ import annotations

import pstats
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from tests.bench.consumers import Lab
from tests.bench.figures import Figure, Stretch
from tests.bench.sides import Job, Side

SOURCE, COPIED = "changes", "copied"
#: Rows at the mark, rows in all.
Sizes = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work: what our side has to be better by, per peer, and how long the runs are."""

    job: Job
    words: str
    goals: dict[Side, float]
    sizes: dict[Side, Sizes]
    source: str = SOURCE

    @property
    def name(self) -> str:
        return self.job.mode

    @property
    def sides(self) -> tuple[Side, ...]:
        return (Side.OURS, *self.goals)


def _goals(java: float, go: float, java_default: float, go_default: float) -> dict[Side, float]:
    return {Side.JAVA: java, Side.GO: go, Side.JAVA_DEFAULT: java_default, Side.GO_DEFAULT: go_default}


_READ = {
    Side.OURS: (500_000, 2_000_000),
    Side.JAVA: (1_000_000, 2_000_000),
    Side.JAVA_DEFAULT: (1_000_000, 2_000_000),
    Side.GO: (500_000, 1_000_000),
    Side.GO_DEFAULT: (250_000, 500_000),
    Side.GO_UNDECODED: (500_000, 1_000_000),
}
_COPY = {
    Side.OURS: (100_000, 400_000),
    Side.JAVA: (500_000, 800_000),
    Side.JAVA_DEFAULT: (500_000, 800_000),
    Side.GO: (250_000, 500_000),
    Side.GO_DEFAULT: (100_000, 250_000),
}
_COPIES = {side: f"copy_{side.name.lower()}" for side in _COPY}

WORKS = (
    Work(Job("count"), "count", _goals(5, 10, 8, 15) | {Side.GO_UNDECODED: 1.3}, _READ),
    Work(Job("column"), "one column read", _goals(3.5, 6, 5, 10), _READ),
    Work(Job("all"), "every column touched", _goals(1.3, 2, 1.4, 3), _READ),
    Work(Job("copy"), "copy", _goals(3.5, 5, 4.5, 9), _COPY, COPIED),
)


def scaled(sizes: Sizes, divisor: int) -> Sizes:
    """The sizes of a shorter run."""
    mark, rows = sizes
    return mark // divisor, rows // divisor


@dataclass
class Throughput:
    """The rounds of some of the works.

    Args:
        divisor: by which all sizes are made smaller.
    """

    lab: Lab
    works: tuple[Work, ...]
    settings: str
    say: Callable[[str], None]
    divisor: int = 1
    _found: dict[tuple[str, Side], list[Stretch]] = field(default_factory=lambda: defaultdict(list))

    async def prepare(self) -> None:
        """Fill the sources, make the destinations."""
        for source in dict.fromkeys(work.source for work in self.works):
            marks = {
                scaled(work.sizes[side], self.divisor)[1]
                for work in self.works
                if work.source == source
                for side in work.sides
            }
            self.say(f"writing {max(marks):,} changes into table {source}")
            await self.lab.stand.create_source(source, marks)
        for work in self.works:
            if work.job.mode == "copy":
                for side in work.sides:
                    await self.lab.stand.create_copy(_COPIES[side])

    async def round(self, number: int) -> None:
        """Everything once, one side right after the other."""
        for work in self.works:
            for side in work.sides:
                stretch = await self._run(work, side)
                self._found[work.name, side].append(stretch)
                self.say(
                    f"round {number}: {work.name}, {side}: {stretch.cpu_per_million:.2f} CPU s per million rows, "
                    f"{stretch.rows_per_second:,.0f} rows/s"
                )

    async def check_copies(self) -> None:
        """Raise unless every copy has every row and every cell of its source."""
        for work in self.works:
            if work.job.mode != "copy":
                continue
            whole = max(work.sizes[side][1] for side in work.sides)
            for side in work.sides:
                if work.sizes[side][1] == whole:  # the others stopped before the source's last versions
                    comparison = await self.lab.stand.compare(work.source, _COPIES[side])
                    if not comparison.equal:
                        raise RuntimeError(f"{_COPIES[side]} is not equal to its source: {comparison}")

    def figures(self) -> list[Figure]:
        """CPU beside every peer; rate and memory beside the peers at their best."""
        found = []
        for work in self.works:
            ours = self._found[work.name, Side.OURS]
            for side, goal in work.goals.items():
                theirs = self._found[work.name, side]
                found.append(Figure(self._name(work, "CPU", side), *_medians(ours, theirs, _cpu), "CPU s/M rows", goal))
            for side in (Side.JAVA, Side.GO):
                theirs, name = self._found[work.name, side], self._name(work, "rate", side)
                found.append(Figure(name, *_medians(ours, theirs, _rate), "rows/s", less_is_better=False))
                name = self._name(work, "memory", side)
                found.append(Figure(name, *_medians(ours, theirs, _memory), "MB resident at most"))
        return found

    async def profile(self, lines: int) -> None:
        """Print where our worker spends its time, so many lines for each work."""
        for work in self.works:
            output = self.lab.folder / f"{work.name}.profile"
            await self._run(work, Side.OURS, profile=output)
            print(f"\nprofile of our worker, {work.words}: top {lines} by own time")
            pstats.Stats(str(output)).sort_stats("tottime").print_stats(lines)

    def _name(self, work: Work, what: str, side: Side) -> str:
        return f"{work.words}, {what}, beside {side} ({self.settings})"

    async def _run(self, work: Work, side: Side, profile: Path | None = None) -> Stretch:
        mark, rows = scaled(work.sizes[side], self.divisor)
        job = replace(work.job, mark=mark, copy=_COPIES[side] if work.job.mode == "copy" else "")
        return Stretch.of(await self.lab.measure(side, work.source, rows, job, profile=profile))


def _cpu(stretch: Stretch) -> float:
    return stretch.cpu_per_million


def _rate(stretch: Stretch) -> float:
    return stretch.rows_per_second


def _memory(stretch: Stretch) -> float:
    return stretch.resident_mb


def _medians(ours: list[Stretch], theirs: list[Stretch], measure: Callable[[Stretch], float]) -> tuple[float, float]:
    return median(map(measure, ours)), median(map(measure, theirs))
