"""What a seed of a story with files stands for."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from tests.simulation.files.faults import draw_file_faults
from tests.simulation.files.filters import draw_rollouts
from tests.simulation.scenario import Scenario


@dataclass(frozen=True, slots=True)
class FilesScenario(Scenario):
    """One story's setting.

    Args:
        file_format: `JsonLines` or `Parquet`.
        typed: whether Parquet has a column for the number of a change.
        file_seconds: age at which a file is published.
    """

    prefix: ClassVar[str] = "files:"

    sink: str = "files"
    file_format: str = "JsonLines"
    compression: str = "none"
    typed: bool = False
    file_seconds: float = 5.0

    @classmethod
    def of(cls, seed: int) -> Self:
        """The scenario of a seed."""
        chance = random.Random(f"files:{seed}")
        drawn = Scenario.drawn(seed).to_json()
        length = float(chance.choice((200, 400)))
        drawn |= {"sink": "files", "policy": "Fail", "length": length, "faults": ()}
        drawn["end"] = round(chance.choice((0.0, 0.0, 0.0, 0.5, 0.9)) * length, 1)
        settled = replace(
            cls(**drawn),
            file_format=chance.choice(("JsonLines", "JsonLines", "Parquet")),
            compression=chance.choice(("none", "none", "gzip", "zstd")),
            file_seconds=chance.choice((1.0, 2.0, 8.0, 30.0)),
        )
        typed = settled.file_format == "Parquet" and random.Random(f"typed:{seed}").random() < 0.5
        settled = replace(settled, typed=typed)
        faults = draw_file_faults(chance, 0.75 * length, settled.timeout, chance.choice((3, 6, 12, 20)))
        faults += draw_rollouts(seed, 0.75 * length, settled.timeout)
        return replace(settled, faults=tuple(sorted(faults, key=lambda fault: fault.at)))
