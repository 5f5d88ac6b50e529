"""The four loads of the toy model: rows per second at a time, with noise, from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

#: Seconds of one run.
LENGTH = 6 * 3600
#: Seconds of one tick.
TICK = 5
#: Standard deviation of the noise that lasts for minutes, and of that of one tick, as a share of the load.
SLOW_NOISE, FAST_NOISE = 0.15, 0.05
#: Seconds for which the slow noise is the same, roughly.
SLOW_SECONDS = 600.0

Shape = Callable[[random.Random], Callable[[float], float]]


def _steady(_: random.Random) -> Callable[[float], float]:
    return lambda time: 3000.0


def _sine(_: random.Random) -> Callable[[float], float]:
    return lambda time: 4000.0 + 3000.0 * math.sin(2 * math.pi * time / 7200.0)


def _bursts(chance: random.Random) -> Callable[[float], float]:
    bursts = []
    for begin in range(0, LENGTH, 1800):
        start = begin + chance.uniform(300, 1500)
        bursts.append((start, start + chance.uniform(60, 300), chance.uniform(2, 5)))
    return lambda time: 2500.0 * next((factor for start, end, factor in bursts if start <= time < end), 1.0)


def _step(chance: random.Random) -> Callable[[float], float]:
    start = chance.uniform(3600, 2 * 3600)
    end = start + chance.uniform(3600, 2 * 3600)
    return lambda time: 9000.0 if start <= time < end else 1500.0


SHAPES: dict[str, Shape] = {"steady": _steady, "sine": _sine, "bursts": _bursts, "step": _step}


def rows(name: str, seed: int) -> list[float]:
    """Rows that arrive in each tick."""
    chance = random.Random(f"{name}:{seed}")
    shape, slow, found = SHAPES[name](chance), 0.0, []
    keep = math.exp(-TICK / SLOW_SECONDS)
    for tick in range(LENGTH // TICK):
        slow = keep * slow + math.sqrt(1 - keep * keep) * chance.gauss(0, SLOW_NOISE)
        factor = max(0.0, 1.0 + slow + chance.gauss(0, FAST_NOISE))
        found.append(shape(tick * TICK) * factor * TICK)
    return found
