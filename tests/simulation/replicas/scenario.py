"""What a seed of a story with two replicas stands for."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from tests.simulation.fleet.acts import Act
from tests.simulation.fleet.scenario import FleetScenario
from tests.simulation.replicas.acts import OWN, REPLICA_KINDS

#: Seconds of a story in which something happens.
LENGTH = 500.0
#: Seconds until both replicas are up and the object is served.
BEGINNING = 60.0


@dataclass(frozen=True, slots=True)
class ReplicatedScenario(FleetScenario):
    """One story's setting; `standbys` replicas wait for the end of the leader."""

    prefix: ClassVar[str] = "replicas:"

    standbys: int = 1

    @classmethod
    def of(cls, seed: int) -> Self:
        """The scenario of a seed."""
        chance = random.Random(f"replicas:{seed}")
        drawn = FleetScenario.of(seed).to_json()
        drawn |= {"plot": "replicas", "end_after": 0.0, "length": LENGTH, "acts": ()}
        return replace(cls(**drawn), acts=_acts(chance))


def _acts(chance: random.Random) -> tuple[Act, ...]:
    """The end of the leader two to four times, with something else before or after."""
    acts = []
    for _ in range(chance.choice((2, 3, 4))):
        at = chance.uniform(BEGINNING, 0.8 * LENGTH)
        name = chance.choices(list(OWN), [kind.weight for kind in OWN.values()])[0]
        acts.append(OWN[name].draw(chance, name, at))
        if chance.random() < 0.5:
            other = chance.choice([name for name in REPLICA_KINDS if name not in OWN])
            acts.append(REPLICA_KINDS[other].draw(chance, other, min(at + chance.uniform(-20, 30), 0.8 * LENGTH)))
    return tuple(sorted(acts, key=lambda act: act.at))
