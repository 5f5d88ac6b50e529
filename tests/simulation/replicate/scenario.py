"""What a seed of a story of `replicate` stands for."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

from tests.simulation.faults import KINDS, Kind, draw_faults
from tests.simulation.scenario import Scenario

#: Users stop the command more often than pods are told to end.
REPLICATE_KINDS: Final[Mapping[str, Kind]] = {
    **KINDS,
    "kill": replace(KINDS["kill"], weight=10),
    "terminate": replace(KINDS["terminate"], weight=10),
}


@dataclass(frozen=True, slots=True)
class ReplicateScenario(Scenario):
    """One story's setting; `workers` are runs of the command at the same time.

    Args:
        destination: `absent`, or `empty` where somebody has created the table already.
        epilogue: what a user does when everything is copied (`epilogues`).
    """

    prefix: ClassVar[str] = "replicate:"

    destination: str = "absent"
    epilogue: str = ""

    @classmethod
    def of(cls, seed: int) -> Self:
        """The scenario of a seed."""
        chance = random.Random(f"replicate:{seed}")
        drawn = Scenario.drawn(seed).to_json()
        length = float(chance.choice((120, 240, 400)))
        drawn |= {
            "sink": "tablestore",
            "tunnel": "BaseAndStream",
            "policy": "Fail",
            "interval": 5,  # those of the command
            "timeout": 30,
            "length": length,
            "end": round(chance.choice((0.02, 0.3, 0.6, 0.9, 0.9)) * length),
            "workers": chance.choice((1, 1, 2, 3)),
            "faults": (),
        }
        settled = replace(
            cls(**drawn),
            destination=chance.choice(("absent", "empty")),
            epilogue=chance.choice(("again", "tunnel deleted", "copy deleted", "copy emptied", "merge", "other type")),
        )
        faults = draw_faults(chance, 0.75 * length, 30, chance.choice((2, 4, 8, 14)), REPLICATE_KINDS)
        return replace(settled, faults=faults)
