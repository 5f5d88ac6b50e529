"""What a seed of a story with Spark stands for."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tests.simulation.fleet.acts import Act
from tests.simulation.fleet.scenario import FleetScenario
from tests.simulation.spark.acts import KILL, NAMES, SPARK_KINDS, VANISH


@dataclass(frozen=True, slots=True)
class SparkScenario(FleetScenario):
    """One story's setting; existing rows are copied by `engine`."""

    prefix: ClassVar[str] = "spark:"

    engine: str = "Spark"

    @classmethod
    def of(cls, seed: int) -> Self:
        """The scenario of a seed."""
        chance = random.Random(f"spark:{seed}")
        drawn = FleetScenario.of(seed).to_json()
        drawn |= {"plot": "spark", "tunnel": "BaseAndStream", "end_after": 0.0, "length": 300.0, "acts": ()}
        told = replace(cls(**drawn), acts=_acts(chance, chance.choice((1, 3, 5, 8))))
        match seed % 10:
            case 3:
                return replace(told, **_outlived(seed))
            case 9:
                return replace(told, **_struck(seed))
        return told


def _acts(chance: random.Random, count: int) -> tuple[Act, ...]:
    """Most of them in the first two minutes, while the rows are copied."""
    names = [chance.choice(NAMES) for _ in range(count)]
    acts = [SPARK_KINDS[name].draw(chance, name, chance.choice((40, 90, 200)) * chance.random()) for name in names]
    return tuple(sorted(acts, key=lambda act: act.at))


def _outlived(seed: int) -> dict[str, Any]:
    """In every tenth story: lost executors go on with their splits, and their object is deleted and applied again."""
    chance = random.Random(f"outlived:{seed}")
    strikes = [Act(5.0 + number, "strike a sender", value=VANISH) for number in range(3)]
    again = Act(round(chance.uniform(50, 80), 3), "delete and apply again", seconds=2.0)
    return {"deletion_policy": "Retain", "keys": 30, "acts": (*strikes, again)}


def _struck(seed: int) -> dict[str, Any]:
    """In every tenth story: executors are killed whose rows are on their way, and few rows change afterwards."""
    chance = random.Random(f"struck:{seed}")
    times = sorted(round(chance.uniform(5, 100), 3) for _ in range(6))
    strikes = tuple(Act(at, "strike a sender", value=KILL) for at in times)
    return {"keys": 30, "pause": 30.0, "burst": 2, "interval": 5, "timeout": 60, "acts": strikes}
