"""Which slices a sample takes; pure, and the same for ever for the same seed."""

from __future__ import annotations

import hashlib
import math


def choose_slices(count: int, percent: float, seed: int) -> tuple[int, ...]:
    """Numbers of the slices to compare, ascending; at least one of `count`.

    A digest ranks the slices, not `random`, whose choice another Python may change: a sample that is taken up again
    has to be the same one. A larger percentage takes the same slices and more.

    Args:
        count: slices of the table.
        percent: more than 0, at most 100.
        seed: says which.
    """
    wanted = max(1, math.ceil(count * percent / 100))
    ranked = sorted(range(count), key=lambda number: _rank(seed, number))
    return tuple(sorted(ranked[:wanted]))


def _rank(seed: int, number: int) -> bytes:
    return hashlib.sha256(f"{seed}:{number}".encode()).digest()
