"""What the machine can: how fast one core copies memory that no cache holds.

A worker that touches each byte a few times is as fast as memory is, so figures of two machines differ by it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.bench.emulator_target import Goal

#: Bytes of each of two buffers: more than the caches of a processor hold.
BYTES = 256 << 20
ROUNDS = 5
#: Name of the figure in `bench.json`.
COPIED = "this machine: memory that one core copies"


def memory_figure(say: Callable[[str], None]) -> Goal:
    """The rate at which this process copies memory, GB/s, as a figure without a goal; tells it, too."""
    rate = copy_rate(BYTES) / 1e9
    say(f"one core copies {rate:.1f} GB/s of memory")
    return Goal(COPIED, rate, None, "GB/s")


def copy_rate(size: int) -> float:
    """Bytes copied in a second: the best of some rounds, since other programs can only take time away.

    Args:
        size: bytes of each of the two buffers.
    """
    # written, not only reserved: pages that nobody has written are one and the same page of zeros
    source, target = bytearray(b"\x01") * size, bytearray(b"\x02") * size
    into, best = memoryview(target), 0.0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        into[:] = source
        best = max(best, size / (time.perf_counter() - began))
    return best
