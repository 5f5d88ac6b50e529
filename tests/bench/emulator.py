"""Measure the emulator's speed and memory against its goals.

    python -m tests.bench.emulator [--rows N] [--only read write memory expiring heartbeat idle] [--output bench.json]

The emulator has one core, the clients another; their requests are encoded beforehand. Every rate is shown twice: by
the wall clock, and by the emulator's own CPU seconds, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ots_tunnel.protocol.plainbuffer.compiled import CODEC
from tests.bench.emulator_load import loads, measure
from tests.bench.figures import add_to_file
from tests.bench.tables.goals import print_goals


def main() -> int:
    """Measure, print, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=300_000, help="rows of each table (default 300000)")
    names = list(loads(0))
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="loads to measure (default all)")
    parser.add_argument("--output", type=Path, default=Path("bench.json"))
    options = parser.parse_args()
    if options.rows < 10_000:
        parser.error("--rows needs at least 10000")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("two cores are needed: one for the emulator, one for the clients", file=sys.stderr)
        return 2
    os.sched_setaffinity(0, cores[-1:])
    goals = measure(options.rows, cores[0], options.only)
    load = f"load average {os.getloadavg()[0]:.1f}, codec: {CODEC}"
    caption = f"{options.rows:,} rows per table, one core for the emulator, {load}"
    print_goals(goals, "The emulator beside its goals", caption)
    add_to_file(options.output, (goal.document() for goal in goals))
    return 0


if __name__ == "__main__":
    sys.exit(main())
