"""What a seed of a story about the number of workers stands for."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from tests.simulation.fleet.acts import KINDS, Act
from tests.simulation.fleet.scenario import FleetScenario
from tests.simulation.scaling.loads import LENGTH, LOADS

#: What may happen in every second story: the number of workers must outlive the operator.
NAMES = ("kill the operator", "kill the operator", "kill a worker", "delete a pod")


@dataclass(frozen=True, slots=True)
class ScalingScenario(FleetScenario):
    """One story's setting.

    Args:
        load: a name in `LOADS`.
        chooser: who chooses the number of workers: Auto, Fixed or HPA.
        most: maxReplicas.
    """

    prefix: ClassVar[str] = "scaling:"

    load: str = "step"
    chooser: str = "Auto"
    most: int = 16

    @classmethod
    def of(cls, seed: int) -> Self:
        """The scenario of a seed: each load in turn."""
        chance = random.Random(f"scaling:{seed}")
        drawn = cls(
            seed,
            plot="scaling",
            replicas=2,
            partitions=16,
            keys=64,
            interval=10,
            timeout=60,
            length=LENGTH,
            load=list(LOADS)[seed % len(LOADS)],
        )
        return replace(drawn, acts=_acts(chance)) if seed % 8 >= 4 else drawn


def _acts(chance: random.Random) -> tuple[Act, ...]:
    names = [chance.choice(NAMES) for _ in range(3)]
    acts = [KINDS[name].draw(chance, name, chance.uniform(0.1, 0.8) * LENGTH) for name in names]
    return tuple(sorted(acts, key=lambda act: act.at))
