"""What happens while the load sinks, in two stories of twenty: few figures are no reason to take workers away.

restarted   the operator is killed right after the load has sunk: the next one has seen no higher load, and waits for a
            whole window
rolled      workers are replaced one by one, for longer than a window, while the load sinks: afterwards nobody knows
            whether it is a lull
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final

from tests.simulation.fleet.acts import Act
from tests.simulation.fleet.operator_process import TAKE_OVER


def _restarted(chance: random.Random, sinks: float) -> tuple[Act, ...]:
    return (Act(sinks + chance.uniform(10, 60), "kill the operator", seconds=chance.uniform(*TAKE_OVER)),)


def _rolled(chance: random.Random, sinks: float) -> tuple[Act, ...]:
    """Two edits, because one is carried out within a window where the fleet is small."""
    begin = sinks - chance.uniform(60, 120)
    return (
        Act(begin - 1, "the cluster is slow", seconds=900.0),
        Act(begin, "edit workers", target=2),
        Act(begin + 300, "edit workers", target=3),
    )


#: Rest of the seed divided by twenty -> the acts of a step that ends at a time; both without other faults.
LULLS: Final[Mapping[int, Callable[[random.Random, float], tuple[Act, ...]]]] = {9: _restarted, 10: _rolled}
#: Seconds of the story after the step: the rest of the rollout, and a window down.
AFTERWARDS: Final = 1200.0
