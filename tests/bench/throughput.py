"""The four kinds of work: count, one column, every column, copy; CPU between a mark and the end of a run.

Java needs a million rows before its compiler is done, half as many where it also writes them. A contender that is
cheaper per row gets more of them, so that they stand out of the noise.
"""

from __future__ import annotations

import pstats
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from tests.bench.bench_scene import record_bytes
from tests.bench.consumers import Lab
from tests.bench.contenders import Contender, Job
from tests.bench.emulator_target import Goal
from tests.bench.figures import Figure, Stretch
from tests.bench.tables.speed import TAKEN

SOURCE, COPIED = "changes", "copied"
#: Rows at the mark, rows in all.
Sizes = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work: our goals beside each peer, and the lengths of the runs."""

    job: Job
    words: str
    goals: dict[Contender, float]
    sizes: dict[Contender, Sizes]
    source: str = SOURCE

    @property
    def name(self) -> str:
        return self.job.mode

    @property
    def contenders(self) -> tuple[Contender, ...]:
        return (Contender.OURS, *self.goals)


def _goals(java: float, go: float, java_default: float, go_default: float) -> dict[Contender, float]:
    return {
        Contender.JAVA: java,
        Contender.GO: go,
        Contender.JAVA_DEFAULT: java_default,
        Contender.GO_DEFAULT: go_default,
    }


_READ = {
    Contender.OURS: (500_000, 2_000_000),
    Contender.JAVA: (1_000_000, 2_000_000),
    Contender.JAVA_DEFAULT: (1_000_000, 2_000_000),
    Contender.GO: (500_000, 1_000_000),
    Contender.GO_DEFAULT: (250_000, 500_000),
    Contender.GO_UNDECODED: (500_000, 1_000_000),
}
_COPY = {
    Contender.OURS: (100_000, 400_000),
    Contender.JAVA: (500_000, 800_000),
    Contender.JAVA_DEFAULT: (500_000, 800_000),
    Contender.GO: (250_000, 500_000),
    Contender.GO_DEFAULT: (100_000, 250_000),
}
_COPIES = {contender: f"copy_{contender.name.lower()}" for contender in _COPY}

WORKS = (
    Work(Job("count"), "count", _goals(5, 10, 8, 15) | {Contender.GO_UNDECODED: 1.3}, _READ),
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
        divisor: all sizes are divided by it.
    """

    lab: Lab
    works: tuple[Work, ...]
    settings: str
    say: Callable[[str], None]
    divisor: int = 1
    _found: dict[tuple[str, Contender], list[Stretch]] = field(default_factory=lambda: defaultdict(list))

    async def prepare(self) -> None:
        """Fill the sources, create the destinations."""
        for source in dict.fromkeys(work.source for work in self.works):
            marks = {
                scaled(work.sizes[contender], self.divisor)[1]
                for work in self.works
                if work.source == source
                for contender in work.contenders
            }
            self.say(f"writing {max(marks):,} changes into table {source}")
            await self.lab.scene.create_source(source, marks)
        for work in self.works:
            if work.job.mode == "copy":
                for contender in work.contenders:
                    await self.lab.scene.create_copy(_COPIES[contender])

    async def round(self, number: int) -> None:
        """Run every work once, one contender right after the other."""
        for work in self.works:
            for contender in work.contenders:
                stretch = await self.run_once(work, contender)
                self._found[work.name, contender].append(stretch)
                self.say(
                    f"round {number}: {work.name}, {contender}: {stretch.cpu_per_million:.2f} CPU s per million rows, "
                    f"{stretch.rows_per_second:,.0f} rows/s"
                )

    async def check_copies(self) -> None:
        """Raise unless every copy has every row and every cell of its source."""
        for work in self.works:
            if work.job.mode != "copy":
                continue
            whole = max(work.sizes[contender][1] for contender in work.contenders)
            for contender in work.contenders:
                if work.sizes[contender][1] == whole:  # the other works stopped before the source's last versions
                    comparison = await self.lab.scene.compare(work.source, _COPIES[contender])
                    if not comparison.equal:
                        raise RuntimeError(f"{_COPIES[contender]} is not equal to its source: {comparison}")

    def figures(self) -> list[Figure]:
        """CPU beside every peer; rate and memory beside the peers at their best."""
        found = []
        for work in self.works:
            ours = self._found[work.name, Contender.OURS]
            for contender, goal in work.goals.items():
                theirs = self._found[work.name, contender]
                found.append(
                    Figure(self._name(work, "CPU", contender), *_medians(ours, theirs, _cpu), "CPU s/M rows", goal)
                )
            for contender in (Contender.JAVA, Contender.GO):
                theirs, name = self._found[work.name, contender], self._name(work, "rate", contender)
                found.append(Figure(name, *_medians(ours, theirs, _rate), "rows/s", less_is_better=False))
                name = self._name(work, "memory", contender)
                found.append(Figure(name, *_medians(ours, theirs, _memory), "MB resident at most"))
        return found

    def taken(self) -> list[Goal]:
        """For each work the memory that our worker takes from the kernel anew, beside the bytes of its rows."""
        return [taken_anew(work.words, self._found[work.name, Contender.OURS], self.settings) for work in self.works]

    async def profile(self, lines: int) -> None:
        """Print the functions in which our worker spends its time, `lines` lines for each work."""
        for work in self.works:
            output = self.lab.folder / f"{work.name}.profile"
            await self.run_once(work, Contender.OURS, profile=output)
            print(f"\nprofile of our worker, {work.words}: top {lines} by own time")
            pstats.Stats(str(output)).sort_stats("tottime").print_stats(lines)

    def _name(self, work: Work, what: str, contender: Contender) -> str:
        return f"{work.words}, {what}, beside {contender} ({self.settings})"

    async def run_once(self, work: Work, contender: Contender, profile: Path | None = None) -> Stretch:
        """One run of a work by one contender."""
        mark, rows = scaled(work.sizes[contender], self.divisor)
        job = replace(work.job, mark=mark, copy=_COPIES[contender] if work.job.mode == "copy" else "")
        return Stretch.of(await self.lab.measure(contender, work.source, rows, job, profile=profile))


def taken_anew(work: str, stretches: Sequence[Stretch], settings: str) -> Goal:
    """A figure without a goal: how many bytes of memory the kernel gives for each byte of the rows."""
    share = median(stretch.taken_per_row for stretch in stretches) / record_bytes()
    return Goal(f"{TAKEN}: {work} ({settings})", share, None, "of the rows' bytes")


def _cpu(stretch: Stretch) -> float:
    return stretch.cpu_per_million


def _rate(stretch: Stretch) -> float:
    return stretch.rows_per_second


def _memory(stretch: Stretch) -> float:
    return stretch.resident_mb


def _medians(ours: list[Stretch], theirs: list[Stretch], measure: Callable[[Stretch], float]) -> tuple[float, float]:
    return median(map(measure, ours)), median(map(measure, theirs))
