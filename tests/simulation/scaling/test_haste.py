"""The judge of hasty decisions objects to what docs/operations.md rules out, and to nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ots_tunnel_operator.times import timestamp
from tests.simulation.machine.process import EPOCH
from tests.simulation.scaling.haste import Haste

WANTED = 4
LOOK = 5.0


class FakeFleet:
    """What the judge sees of a fleet: workers that are ready, and an operator that leads since the beginning."""

    def __init__(self) -> None:
        self.loop = SimpleNamespace(now=0.0)
        self.operator = SimpleNamespace(began=0.0)
        self.ready = WANTED
        self.moving: list[str] = []
        self.violations: list[str] = []

    def ready_pods(self) -> int:
        return self.ready

    def unowned(self) -> list[str]:
        return self.moving

    def orphaned(self) -> list[str]:
        return []

    def violate(self, rule: str, text: str) -> None:
        self.violations.append(text.partition(": ")[0])


class Told:
    """Looks of the judge at a fleet."""

    def __init__(self) -> None:
        self.fleet = FakeFleet()
        self._haste = Haste(self.fleet)  # type: ignore[arg-type]  # - what it asks for is there
        self._decision: dict[str, Any] = {}

    def pass_time(self, seconds: float) -> None:
        """Looks at a fleet that stays as it is."""
        until = self.fleet.loop.now + seconds
        while self.fleet.loop.now < until:
            self._look()
            self.fleet.loop.now += LOOK

    def decide(self, number: int, reason: str) -> list[str]:
        """A decision of this moment, and what was wrong so far."""
        time = timestamp(EPOCH + self.fleet.loop.now)
        self._decision = {"time": time, "from": WANTED, "to": number, "reason": reason}
        self._look()
        return self.fleet.violations

    def _look(self) -> None:
        deployment = {
            "metadata": {"generation": 1},
            "spec": {"replicas": WANTED},
            "status": {"observedGeneration": 1, "updatedReplicas": WANTED, "replicas": WANTED},
        }
        status = {"autoscaling": {"lastDecision": self._decision} if self._decision else {}}
        self._haste.look({"status": status}, deployment)


def test_a_settled_fleet_may_be_changed_after_a_window() -> None:
    told = Told()
    told.pass_time(60)

    assert told.decide(5, "Backlog") == []
    told.pass_time(600)
    assert told.decide(3, "Idle") == []


@pytest.mark.parametrize(
    ("seconds", "number", "reason", "wrong"),
    [(40, 5, "Backlog", True), (50, 5, "Busy", False), (590, 3, "Idle", True), (605, 3, "FewerChannels", False)],
)
def test_an_operator_that_was_started_waits_for_a_window(seconds: int, number: int, reason: str, wrong: bool) -> None:
    told = Told()
    told.pass_time(1000)
    told.fleet.operator.began = told.fleet.loop.now
    told.pass_time(seconds)

    assert bool(told.decide(number, reason)) == wrong


def test_what_follows_from_bounds_is_no_haste() -> None:
    told = Told()
    told.fleet.moving = ["c1"]
    told.pass_time(100)

    assert told.decide(2, "Bounds") == []


def test_a_decision_of_the_leader_before_is_none_of_this_one() -> None:
    told = Told()
    told.pass_time(700)
    told.fleet.operator.began = told.fleet.loop.now + 3

    assert told.decide(3, "Idle") == []


@pytest.mark.parametrize(("seconds", "wrong"), [(300, False), (400, True)])
def test_a_window_down_may_not_be_mostly_a_rollout(seconds: int, wrong: bool) -> None:
    told = Told()
    told.pass_time(700)
    told.fleet.ready = 3
    told.pass_time(seconds)
    told.fleet.ready = WANTED
    told.pass_time(50)

    assert bool(told.decide(3, "Idle")) == wrong


def test_a_rollout_before_the_window_down_is_over() -> None:
    told = Told()
    told.fleet.ready = 3
    told.pass_time(700)
    told.fleet.ready = WANTED
    told.pass_time(320)

    assert told.decide(3, "Idle") == []


@pytest.mark.parametrize(("seconds", "wrong"), [(20, False), (60, True)])
def test_nothing_is_decided_while_channels_move(seconds: int, wrong: bool) -> None:
    told = Told()
    told.pass_time(100)
    told.fleet.moving = ["c1"]
    told.pass_time(seconds)

    assert bool(told.decide(5, "Backlog")) == wrong
