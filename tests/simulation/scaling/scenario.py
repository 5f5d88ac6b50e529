"""What a seed of a story about the number of workers stands for."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from tests.simulation.fleet.scenario import FleetScenario
from tests.simulation.scaling.acts import draw
from tests.simulation.scaling.loads import LENGTH, LOADS, chance_of, step_of
from tests.simulation.scaling.lulls import AFTERWARDS, LULLS


@dataclass(frozen=True, slots=True)
class ScalingScenario(FleetScenario):
    """One story's setting.

    Args:
        load: a name in `LOADS`.
        chooser: who chooses the number of workers: Auto, Fixed or HPA.
        most: maxReplicas; more than there are channels, so that these are the limit.
    """

    prefix: ClassVar[str] = "scaling:"

    load: str = "step"
    chooser: str = "Auto"
    most: int = 16

    @classmethod
    def of(cls, seed: int) -> Self:
        """The scenario of a seed: each load in turn, four stories with faults after four without, and lulls apart."""
        chance = random.Random(f"scaling:{seed}")
        drawn = cls(
            seed,
            plot="scaling",
            replicas=2,
            partitions=8,
            keys=32,
            interval=10,
            timeout=60,
            length=LENGTH,
            load=list(LOADS)[seed % len(LOADS)],
        )
        if lull := LULLS.get(seed % 20):
            _, sinks = step_of(chance_of(seed))
            return replace(drawn, load="step", acts=lull(chance, sinks), length=sinks + AFTERWARDS)
        return replace(drawn, acts=draw(chance, drawn.length)) if seed % 8 >= 4 else drawn
