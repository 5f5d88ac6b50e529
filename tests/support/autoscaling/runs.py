"""Runs of the toy model: what a way to choose the number of workers costs, and how late it is."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from ots_tunnel_operator.autoscale.decision import Cause, decide
from ots_tunnel_operator.autoscale.history import History
from ots_tunnel_operator.autoscale.policy import Policy
from ots_tunnel_operator.autoscale.record import Record
from tests.support.autoscaling.fleet import Channel, Fleet
from tests.support.autoscaling.loads import TICK, rows

#: Seconds between two looks.
LOOK = 15
#: Lag in seconds above which a moment counts as late.
LATE = 60.0

#: A fleet -> the number of workers from now on; called at every look.
Chooser = Callable[[Fleet], int]


@dataclass(frozen=True)
class Outcome:
    """What one run was like."""

    rescales: int
    moves: int
    late: float
    """Share of time with a lag above the target."""
    workers: float
    """Mean number."""


def fixed(_: Fleet, workers: int) -> int:
    """A fleet of one size."""
    return workers


class Autoscaler:
    """The operator's decision."""

    def __init__(self, policy: Policy, workers: int) -> None:
        self.policy = policy
        self.record = Record(workers)
        self.history = History()
        self.changes: list[tuple[int, Cause, int, int]] = []

    def __call__(self, fleet: Fleet) -> int:
        decision = decide(self.policy, self.record, fleet.figures(), self.history)
        self.history = decision.history
        if (change := decision.change) is not None:
            useless = fleet.now if change.cause is Cause.INEFFECTIVE else self.record.ineffective
            self.record = replace(self.record, desired=change.after, scaled=fleet.now, ineffective=useless)
            self.changes.append((fleet.now, change.cause, change.before, change.after))
        return self.record.desired


class LagThreshold:
    """An HPA on lag: workers in proportion to lag / target, 10 % tolerance, the largest number of a window down."""

    def __init__(self, target: float, window: float, most: int = 16) -> None:
        self._target, self._window, self._most = target, window, most
        self._asked: list[tuple[float, int]] = []

    def __call__(self, fleet: Fleet) -> int:
        ratio = fleet.lag / self._target
        asked = fleet.workers if abs(ratio - 1) <= 0.1 else -int(-fleet.workers * ratio // 1)
        asked = max(1, min(self._most, asked, max(4, 2 * fleet.workers)))
        self._asked = [item for item in self._asked if item[0] > fleet.now - self._window] + [(fleet.now, asked)]
        return asked if asked > fleet.workers else min(fleet.workers, max(number for _, number in self._asked))


def run(
    load: str, seed: int, choose: Chooser, *, workers: int, heartbeat: int = 10, channels: list[Channel] | None = None
) -> Outcome:
    """One run of six hours."""
    fleet = Fleet(random.Random(f"fleet:{seed}"), heartbeat, workers)
    if channels is not None:
        fleet = Fleet(random.Random(f"fleet:{seed}"), heartbeat, workers, channels)
    rescales, late, total, ticks = 0, 0, 0, rows(load, seed)
    for number, arriving in enumerate(ticks):
        fleet.tick(arriving)
        late += fleet.lag > LATE
        total += fleet.workers
        if number % (LOOK // TICK) == 0 and (wanted := choose(fleet)) != fleet.workers:
            rescales += 1
            fleet.scale(wanted)
    return Outcome(rescales, fleet.moves, late / len(ticks), total / len(ticks))
