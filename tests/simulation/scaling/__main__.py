"""Prints late time and changes of the number of workers: `python -m tests.simulation.scaling [--seeds N]`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from tests.simulation.machine.seams import install_seams
from tests.simulation.scaling.loads import LOADS, RIGHT
from tests.simulation.scaling.scenario import ScalingScenario
from tests.simulation.service import install_ledger
from tests.simulation.stories import tell
from tests.simulation.telling import Outcome


def main() -> int:
    """Tell the story of each load with each chooser; 1 where a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.scaling", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="for each load")
    parser.add_argument("--load", choices=LOADS, help="this one alone")
    options = parser.parse_args()
    install_ledger()
    install_seams()
    print(f"{'load':8} {'number of workers':18} {'rescales':>8} {'late':>6} {'workers':>8} {'wall':>7}")
    broken = 0
    for place, load in enumerate(LOADS):
        if options.load not in (None, load):
            continue
        for chooser, replicas in (("Fixed", RIGHT[load]), ("HPA", 2), ("Auto", 2)):
            outcomes = []
            for number in range(options.seeds):
                scenario = ScalingScenario.of(place + 8 * number)
                outcomes.append(tell(replace(scenario, chooser=chooser, replicas=replicas)))
            broken += sum(outcome.violation is not None for outcome in outcomes)
            name = f"fixed {replicas}" if chooser == "Fixed" else chooser
            print(_line(load, name, outcomes), flush=True)
            for outcome in outcomes:
                if outcome.violation is not None:
                    print(f"    {outcome.scenario.name}: {outcome.violation}", flush=True)
    return int(bool(broken))


def _line(load: str, name: str, outcomes: list[Outcome]) -> str:
    looks = sum(outcome.counts["looks at the load"] for outcome in outcomes)
    late = sum(outcome.counts.get("late looks", 0) for outcome in outcomes) / looks
    workers = sum(outcome.counts["workers in looks"] for outcome in outcomes) / looks
    rescales = sum(outcome.counts.get("rescales", 0) for outcome in outcomes) / len(outcomes)
    wall = sum(outcome.wall for outcome in outcomes)
    return f"{load:8} {name:18} {rescales:8.1f} {late:6.1%} {workers:8.1f} {wall:6.0f}s"


if __name__ == "__main__":
    sys.exit(main())
