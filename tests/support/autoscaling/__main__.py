"""Prints the toy model's table: `python -m tests.support.autoscaling`."""

from __future__ import annotations

import sys

from ots_tunnel_operator.autoscale.policy import Policy
from tests.support.autoscaling.runs import Autoscaler, Chooser, LagThreshold, Outcome, fixed, run

#: Seeds that the constants were not picked with.
SEEDS = (11, 12, 13, 14, 15)
#: Load -> a fixed fleet of the right size, known afterwards.
RIGHT = {"steady": 5, "sine": 8, "bursts": 8, "step": 16}


def _choosers(size: int) -> dict[str, tuple[Chooser, int, int]]:
    """Name -> chooser, first number of workers, heartbeat."""
    return {
        f"fixed {size}": (lambda fleet: fixed(fleet, size), size, 10),
        "HPA on lag 60 s, window 300 s": (LagThreshold(60, 300), 4, 10),
        "HPA on lag 60 s, window 1800 s": (LagThreshold(60, 1800), 4, 10),
        "Auto": (Autoscaler(Policy(heartbeat=10), 4), 4, 10),
        "Auto, scaleDown 1800 s": (Autoscaler(Policy(heartbeat=10, down_window=1800), 4), 4, 10),
        "Auto, heartbeat 30 s": (Autoscaler(Policy(heartbeat=30), 4), 4, 30),
    }


def _mean(outcomes: list[Outcome]) -> Outcome:
    size = len(outcomes)
    return Outcome(
        round(sum(each.rescales for each in outcomes) / size),
        round(sum(each.moves for each in outcomes) / size),
        sum(each.late for each in outcomes) / size,
        sum(each.workers for each in outcomes) / size,
    )


def main() -> int:
    """Print the means over the seeds."""
    print(f"{'load':8} {'number of workers':32} {'rescales':>8} {'moves':>6} {'late':>6} {'workers':>8}")
    for load, size in RIGHT.items():
        for name in _choosers(size):
            outcomes = []
            for seed in SEEDS:
                choose, workers, heartbeat = _choosers(size)[name]
                outcomes.append(run(load, seed, choose, workers=workers, heartbeat=heartbeat))
            mean = _mean(outcomes)
            print(
                f"{load:8} {name:32} {mean.rescales:8} {mean.moves:6} {mean.late:6.1%} {mean.workers:8.1f}", flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
