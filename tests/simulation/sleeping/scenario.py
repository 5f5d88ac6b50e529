"""What a seed of a story about scaling to zero stands for."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar, Self

from tests.simulation.fleet.scenario import AFTER_RETENTION, FleetScenario
from tests.simulation.sleeping.nights import NIGHTS


@dataclass(frozen=True, slots=True)
class SleepingScenario(FleetScenario):
    """One story's setting.

    Args:
        nights: what happens while no worker runs, one after the other (`nights`).
        idle: scaleToZero.idleSeconds.
        peek: scaleToZero.peekIntervalSeconds.
        most: maxReplicas.
    """

    prefix: ClassVar[str] = "sleeping:"

    nights: tuple[str, ...] = ()
    idle: int = 120
    peek: int = 60
    most: int = 4

    @classmethod
    def of(cls, seed: int) -> Self:
        """The scenario of a seed: every kind of night comes in turn, and three others are drawn."""
        chance, names = random.Random(f"sleeping:{seed}"), list(NIGHTS)
        drawn = [chance.choice(names) for _ in range(3)]
        return cls(
            seed,
            plot="sleeping",
            replicas=chance.choice((1, 2)),
            partitions=chance.choice((1, 3)),
            keys=12,
            interval=chance.choice((5, 10)),
            timeout=60,
            length=180.0,
            after_retention=chance.choice(AFTER_RETENTION).value,
            deletion_policy=chance.choice(("Retain", "Delete")),
            nights=(names[seed % len(names)], *drawn),
            peek=chance.choice((30, 60, 120)),
        )
