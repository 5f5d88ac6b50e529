"""The loads of the stories: rows per second at a time, with noise; a worker takes one row a second."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

#: Seconds of a story's load.
LENGTH = 3600.0


def _steady(_: random.Random) -> Callable[[float], float]:
    return lambda now: 1.5


def _sine(_: random.Random) -> Callable[[float], float]:
    return lambda now: 2.0 + 1.5 * math.sin(2 * math.pi * now / LENGTH)


def _bursts(chance: random.Random) -> Callable[[float], float]:
    begins = [chance.uniform(300, 900), chance.uniform(2100, 2700)]
    bursts = [(begin, begin + chance.uniform(60, 300), chance.uniform(2, 5)) for begin in begins]
    return lambda now: next((factor for begin, end, factor in bursts if begin <= now < end), 1.0)


def chance_of(seed: int) -> random.Random:
    """The chance from which a story's load comes."""
    return random.Random(f"load:{seed}")


def step_of(chance: random.Random) -> tuple[float, float]:
    """When the load of a step begins to be high, and when it sinks."""
    begin = chance.uniform(600, 900)
    return begin, begin + 1500


def _step(chance: random.Random) -> Callable[[float], float]:
    begin, end = step_of(chance)
    return lambda now: 4.0 if begin <= now < end else 0.75


#: Name -> rows per second; the noise comes from the same chance.
LOADS: dict[str, Callable[[random.Random], Callable[[float], float]]] = {
    "steady": _steady,
    "sine": _sine,
    "bursts": _bursts,
    "step": _step,
}
#: Load -> a fixed fleet of the right size, known afterwards.
RIGHT = {"steady": 3, "sine": 5, "bursts": 4, "step": 8}
