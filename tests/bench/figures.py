"""From runs to figures: slopes between two sizes, medians, and the rows of `bench.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.consumers import Usage

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Pair:
    """One run of the small and one of the large size; what both have, such as the start, cancels out."""

    small_rows: int
    large_rows: int
    small: Usage
    large: Usage

    @property
    def rows(self) -> int:
        return self.large_rows - self.small_rows

    @property
    def cpu_per_million(self) -> float:
        """CPU seconds per million rows."""
        return (self.large.cpu_seconds - self.small.cpu_seconds) / self.rows * MILLION

    @property
    def rows_per_second(self) -> float:
        """Rows per second of wall time; includes waiting for the emulator."""
        return self.rows / max(self.large.seconds - self.small.seconds, 1e-3)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line: ours beside the peer's. `ratio` is ours by the peer's, so that 1 is a draw."""

    name: str
    ours: float
    peer: float
    unit: str
    goal: float | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.peer if self.peer else float("inf")

    @property
    def met(self) -> bool | None:
        """None where there is no goal."""
        return None if self.goal is None else self.ratio <= self.goal

    def document(self) -> dict[str, Any]:
        """As `bench.json` has it."""
        return {
            "name": self.name,
            "ours": round(self.ours, 3),
            "peer": round(self.peer, 3),
            "unit": self.unit,
            "ratio": round(self.ratio, 3),
            "goal": self.goal,
            "met": self.met,
        }


def add_to_file(path: Path, documents: Iterable[dict[str, Any]]) -> None:
    """Replace what an earlier run said of the same, and leave everything else."""
    lines = {line["name"]: line for line in (json.loads(path.read_text()) if path.exists() else [])}
    lines |= {document["name"]: document for document in documents}
    path.write_text(json.dumps([*lines.values()], indent=2) + "\n")


def figures_of(name: str, ours: Sequence[Pair], peer: Sequence[Pair]) -> list[Figure]:
    """The figures of one kind of work: medians over the rounds."""
    return [
        Figure(
            f"{name}: CPU",
            median(pair.cpu_per_million for pair in ours),
            median(pair.cpu_per_million for pair in peer),
            "CPU s per million rows",
        ),
        Figure(
            f"{name}: rate",
            median(pair.rows_per_second for pair in ours),
            median(pair.rows_per_second for pair in peer),
            "rows/s",
        ),
        Figure(
            f"{name}: memory",
            median(pair.large.resident_mb for pair in ours),
            median(pair.large.resident_mb for pair in peer),
            "MB resident at most",
        ),
    ]
