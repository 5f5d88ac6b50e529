"""The rounds of all sinks: every contender once in each, in turns from the front and from the back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tests.bench.consumers import Lab
from tests.bench.contenders import Contender
from tests.bench.emulator_target import Goal
from tests.bench.figures import Figure, Stretch
from tests.bench.sinks.destinations import Places
from tests.bench.sinks.works import SIZES, SinkWork
from tests.bench.tables.speed import SINK
from tests.bench.throughput import scaled, taken_anew

TABLE = "changes"
UNIT = "CPU s/M rows"


@dataclass
class SinkRounds:
    """The rounds of some of the works.

    Args:
        settings: of all contenders, part of every figure's name.
        divisor: all sizes are divided by it.
    """

    lab: Lab
    places: Places
    works: Sequence[SinkWork]
    settings: str
    say: Callable[[str], None]
    divisor: int = 1
    _found: dict[tuple[str, Contender], list[Stretch]] = field(default_factory=lambda: defaultdict(list))

    async def prepare(self) -> None:
        """Fill the source."""
        marks = {self._sizes(contender)[1] for work in self.works for contender in work.contenders}
        self.say(f"writing {max(marks):,} changes into table {TABLE}")
        await self.lab.scene.create_source(TABLE, marks)

    async def round(self, number: int) -> None:
        """Run every work once, one contender right after the other."""
        for work in self.works:
            for contender in work.contenders[:: 1 if number % 2 else -1]:
                stretch = await self._run(work, contender)
                self._found[work.name, contender].append(stretch)
                self.say(f"round {number}: {work.words}, {contender}: {stretch.cpu_per_million:.2f} {UNIT}")

    def documents(self) -> list[dict[str, Any]]:
        """Entries of `bench.json`: our CPU with its goal, and beside each peer; the better one has the other goal.

        And for each sink the memory that our worker takes anew.
        """
        found: list[dict[str, Any]] = []
        for work in self.works:
            used = {
                contender: median(stretch.cpu_per_million for stretch in self._found[work.name, contender])
                for contender in work.contenders
            }
            found += documents_of(work, used, self.settings)
            found.append(taken_anew(work.words, self._found[work.name, Contender.OURS], self.settings).document())
        return found

    async def _run(self, work: SinkWork, contender: Contender) -> Stretch:
        """One run, from its mark on.

        Raises:
            RuntimeError: not every record arrived once.
        """
        mark, rows = self._sizes(contender)
        with self.places.destination(work.name) as destination:
            job = work.job(destination.to, mark)
            report = await self.lab.measure(contender, TABLE, rows, job, stdout=destination.stdout)
            check_arrived(work, contender, rows, destination.count())
        return Stretch.of(report)

    def _sizes(self, contender: Contender) -> tuple[int, int]:
        return scaled(SIZES[contender], self.divisor)


def check_arrived(work: SinkWork, contender: Contender, rows: int, arrived: int) -> None:
    """Check that as many records arrived as there were.

    Raises:
        RuntimeError: records are missing, or came twice.
    """
    if arrived != rows:
        raise RuntimeError(f"{work.words}, {contender}: {arrived:,} records arrived, there were {rows:,}")


def documents_of(work: SinkWork, used: dict[Contender, float], settings: str) -> list[dict[str, Any]]:
    """The entries of one work.

    Args:
        used: CPU seconds per million rows of every contender.
    """
    name, ours = f"{SINK}: {work.words}", used[Contender.OURS]
    better = min(work.peers, key=lambda peer: used[peer])
    found = [Goal(f"{name} ({settings})", ours, work.most, UNIT, at_least=False).document()]
    for peer, library in work.peers.items():
        beside = f"{name}, beside {peer.partition(',')[0]} with {library} ({settings})"
        goal = work.times if peer is better else None
        found.append(Figure(beside, ours, used[peer], UNIT, goal).document())
    return found
