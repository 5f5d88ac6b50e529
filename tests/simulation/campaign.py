"""Many seeds for a time, on every core: prints failing seeds at once, and at the end the speed and their commands."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.simulation.apart import Child, finished, start
from tests.simulation.machine.determinism import wall_seconds
from tests.simulation.stories import load, tell_here
from tests.simulation.telling import Outcome
from tests.support.story_kinds import KINDS

ROOT = Path(__file__).parents[2]
#: Where scenarios of failing seeds are written; a file that moves to `regressions` is run by every test.
FAILURES = ROOT / "build" / "simulation"
#: Failing seeds after which a campaign ends: more of them say nothing new.
ENOUGH = 5


@dataclass
class Tally:
    """What a campaign has done."""

    first: int
    seeds: int = 0
    simulated: float = 0.0
    wall: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Outcome] = field(default_factory=list)

    @property
    def hours_per_minute(self) -> float:
        """Simulated hours per minute of the machine."""
        return self.simulated / 3600 / (self.wall / 60) if self.wall else 0.0

    def add(self, outcome: Outcome) -> None:
        """Count a story."""
        self.seeds += 1
        self.simulated += outcome.seconds
        self.counts.update(outcome.counts)
        if outcome.violation is not None:
            self.failures.append(outcome)

    def lines(self) -> Iterator[str]:
        """The summary."""
        hours = self.simulated / 3600
        yield f"{self.seeds} seeds from {self.first} on, {hours:.1f} simulated hours in {self.wall:.0f} s"
        yield f"{self.hours_per_minute:.1f} simulated hours a minute"
        yield ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        for outcome in self.failures:
            yield f"seed {outcome.scenario.name}: {outcome.violation}"
            yield f"    make simulate SEED={outcome.scenario.name}"


def run_campaign(
    first: int,
    seconds: float,
    workers: int | None = None,
    *,
    kind: str = "all",
    enough: int = ENOUGH,
    seeds: int = sys.maxsize,
) -> Tally:
    """Run seeds from `first` on until the time is over; stories under way are finished.

    Args:
        seeds: most of them.
        kind: a key of `KINDS`.
        enough: failing seeds after which it ends.
    """
    tally, began = Tally(first), wall_seconds()
    seed, limit = first, workers or os.cpu_count() or 1
    running: set[Child] = set()
    while True:
        while (
            len(running) < limit
            and wall_seconds() - began < seconds
            and len(tally.failures) < enough
            and seed < first + seeds
        ):
            prefixes = KINDS[kind]
            running.add(start(tell_here, load(f"{prefixes[seed % len(prefixes)]}{seed}")))
            seed += 1
        if not running:
            break
        for child in finished(running):
            running.discard(child)
            outcome: Outcome = child.result()
            tally.add(outcome)
            if outcome.violation is not None:
                _keep(outcome)
    tally.wall = wall_seconds() - began
    return tally


def _keep(outcome: Outcome) -> None:
    """Say at once what was found: a campaign may take hours, or be ended."""
    print(f"seed {outcome.scenario.name}: {outcome.violation}", flush=True)
    FAILURES.mkdir(parents=True, exist_ok=True)
    (FAILURES / f"seed-{outcome.scenario.name.replace(':', '-')}.json").write_text(outcome.scenario.text())
