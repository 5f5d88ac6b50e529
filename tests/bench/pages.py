"""Measure what a page of 4 MiB costs each sink: how long it blocks the event loop, and the memory beside Kafka.

    python -m tests.bench.pages [--rounds N] [--only http kafka ...] [--quick] [--output bench.json]

The worker has one core, the destination another. A page holds 40,000 rows of one small cell, the most work that fits.
Heartbeats and other channels wait while the loop is blocked. The time is shown twice: without what other processes took
of it, and by the clock. The most of all rounds is kept, of the time and of the memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.consumers import ROOT
from tests.bench.emulator_target import Goal
from tests.bench.figures import add_to_file
from tests.bench.tables.goals import print_goals
from tests.bench.tables.speed import PAGE
from tests.support.sinks.page_places import SINKS, section_of

MILLISECONDS, MEGABYTES = 1e3, 1e6
#: Milliseconds for which a page may block the loop.
LONGEST_MS = 50
BUDGET, QUEUE = 64 << 20, 32 << 20
#: Bytes of a worker without records.
ALLOWANCE = 100_000_000
#: Seconds of one run.
DEADLINE = 300.0


@dataclass(frozen=True, slots=True)
class Load:
    """What one run moves: channels with as many pages of one kind."""

    kind: str
    channels: int
    pages: int


ALONE = Load("narrow", channels=1, pages=4)
BESIDE = (Load("narrow", channels=8, pages=2), Load("large", channels=8, pages=2))


def main() -> int:
    """Measure, print, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each measurement (default 3)")
    parser.add_argument("--only", nargs="+", choices=SINKS, default=SINKS, help="sinks to measure (default all)")
    parser.add_argument("--quick", action="store_true", help="one round as a trial: its figures are not kept")
    parser.add_argument("--output", type=Path, default=Path("bench.json"))
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("two cores are needed: one for the destination, one for the worker", file=sys.stderr)
        return 2
    os.sched_setaffinity(0, cores[:1])
    goals = asyncio.run(_measure(options.only, 1 if options.quick else options.rounds, cores[1]))
    print_goals(goals, "A page of 4 MiB in each sink", f"load average {os.getloadavg()[0]:.1f}")
    if not options.quick:
        add_to_file(options.output, (goal.document() for goal in goals))
    return 0


async def _measure(sinks: list[str], rounds: int, core: int) -> list[Goal]:
    goals = []
    for sink in sinks:
        found = [await _run(sink, ALONE, core) for _ in range(rounds)]
        goals += blocking(sink, *(max(run[name] for run in found) * MILLISECONDS for name in ("busiest", "longest")))
    if "kafka" in sinks:
        for load in BESIDE:
            peaks = [(await _run("kafka", load, core))["peak"] / MEGABYTES for _ in range(rounds)]
            goals.append(memory("kafka", load, max(peaks)))
    return goals


def blocking(sink: str, busiest_ms: float, longest_ms: float) -> list[Goal]:
    """The lines of a sink: the longest time between two rounds of the event loop while it takes a page."""
    name = f"{PAGE}: the event loop is blocked, {sink}"
    return [
        Goal(name, busiest_ms, LONGEST_MS, "ms at most", at_least=False),
        Goal(f"{name}, by the clock", longest_ms, None, "ms at most", at_least=False),
    ]


def memory(sink: str, load: Load, megabytes: float) -> Goal:
    """The line of a sink's memory, beside the budget, its queue and a worker without records."""
    name = f"{PAGE}: memory, {sink}, {load.channels} channels, {load.kind} rows, budget {BUDGET >> 20} MiB"
    return Goal(name, megabytes, (BUDGET + QUEUE + ALLOWANCE) / MEGABYTES, "MB resident at most", at_least=False)


async def _run(sink: str, load: Load, core: int) -> dict[str, Any]:
    """One run in a process of its own.

    Raises:
        RuntimeError: it failed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # installed with PySpark, which no worker has; Arrow would import it
        (folder / "pandas.py").write_text("raise ImportError")
        async with section_of(sink, folder) as section:
            order = {"sink": section, "kind": load.kind, "budget": BUDGET, "folder": name}
            order |= {"channels": load.channels, "pages": load.pages}
            program = await asyncio.create_subprocess_exec(
                *("taskset", "--cpu-list", str(core), sys.executable, "-m"),
                *("tests.support.programs.page_program", json.dumps(order)),
                env={
                    **os.environ,
                    "PYTHONPATH": f"{folder}:{ROOT}:{ROOT / 'worker'}",
                    "OTS_TUNNEL_CODEC": "compiled",
                },
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                async with asyncio.timeout(DEADLINE):
                    _, said = await program.communicate()
            finally:
                if program.returncode is None:
                    program.kill()
    if program.returncode:
        raise RuntimeError(f"{sink}, {load}: status {program.returncode}: {said.decode(errors='replace')[-2000:]}")
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    print(f"{sink}, {load.kind}, {load.channels} channels: {found}", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
