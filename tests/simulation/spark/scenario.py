"""What a seed of a story with Spark stands for."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from tests.simulation.fleet.acts import Act
from tests.simulation.fleet.scenario import FleetScenario
from tests.simulation.spark.acts import NAMES, SPARK_KINDS


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
        return replace(cls(**drawn), acts=_acts(chance, chance.choice((1, 3, 5, 8))))


def _acts(chance: random.Random, count: int) -> tuple[Act, ...]:
    """Most of them in the first two minutes, while the rows are copied."""
    names = [chance.choice(NAMES) for _ in range(count)]
    acts = [SPARK_KINDS[name].draw(chance, name, chance.choice((40, 90, 200)) * chance.random()) for name in names]
    return tuple(sorted(acts, key=lambda act: act.at))
