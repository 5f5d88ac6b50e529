"""The figures of one story, and the file that keeps them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from tests.simulation.scaling.scenario import ScalingScenario
from tests.simulation.telling import Outcome


@dataclass(frozen=True, slots=True)
class Figures:
    """What one story was like while its load lasted."""

    name: str
    load: str
    chooser: str
    replicas: int
    """Number of workers at first; of a fixed fleet always."""
    faults: int
    changes: int
    turns: int
    """Changes of the direction."""
    late: float
    """Share of the time with a row that waits for more than a minute."""
    workers: float
    """Mean number."""
    violation: str
    wall: float
    """Seconds of the machine."""

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        """The figures of a story that was told."""
        scenario, counts = outcome.scenario, outcome.counts
        assert isinstance(scenario, ScalingScenario)
        looks = max(1, counts.get("looks at the load", 0))
        return cls(
            name=scenario.name,
            load=scenario.load,
            chooser=scenario.chooser,
            replicas=scenario.replicas,
            faults=len(scenario.acts),
            changes=counts.get("changes", 0),
            turns=counts.get("turns", 0),
            late=counts.get("late looks", 0) / looks,
            workers=counts.get("workers in looks", 0) / looks,
            violation="" if outcome.violation is None else str(outcome.violation),
            wall=outcome.wall,
        )

    def __str__(self) -> str:
        text = (
            f"{self.name:11} {self.load:7} {self.chooser:5} {self.faults} faults, {self.changes} changes, "
            f"{self.turns} turns, late {self.late:.1%}, {self.workers:.1f} workers, told in {self.wall:.0f} s"
        )
        return f"{text}; {self.violation}" if self.violation else text


class Kept:
    """Figures by story, in a file of JSON lines if one is given."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._found: dict[tuple[str, str, int], Figures] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                self._take(Figures(**json.loads(line)))

    def __contains__(self, scenario: ScalingScenario) -> bool:
        return (scenario.name, scenario.chooser, scenario.replicas) in self._found

    def of(self, scenario: ScalingScenario) -> Figures:
        """The figures of a story that was told."""
        return self._found[scenario.name, scenario.chooser, scenario.replicas]

    def add(self, figures: Figures) -> None:
        """Keep one more."""
        self._take(figures)
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(json.dumps(asdict(figures)) + "\n")

    def _take(self, figures: Figures) -> None:
        self._found[figures.name, figures.chooser, figures.replicas] = figures
