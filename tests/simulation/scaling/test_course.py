"""The judge of the number of workers objects to what it should, and to nothing else."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ots_tunnel.model import ChannelStatus
from tests.simulation.scaling.course import PASS_SECONDS, Course
from tests.simulation.scaling.scenario import ScalingScenario

CALM = ScalingScenario.of(0)
FAULTY = ScalingScenario.of(4)


class FakeFleet:
    """What the judge sees of a fleet: eight channels of which one has ended, and no row that waits."""

    def __init__(self, scenario: ScalingScenario) -> None:
        self.scenario = scenario
        self.loop = SimpleNamespace(now=100.0)
        self.unreachable_until = 0.0
        self.history = SimpleNamespace(entries={})
        self.delivery = SimpleNamespace(applied={})
        self.story = SimpleNamespace(tell=lambda *_: None)
        self.violations: list[str] = []
        self.children: tuple[str, ...] = ()

    def tunnel(self) -> Any:
        states = [ChannelStatus.OPEN] * 7 + [ChannelStatus.TERMINATED]
        return SimpleNamespace(channels={f"c{n}": SimpleNamespace(status=state) for n, state in enumerate(states)})

    def is_readable(self, channel_id: str) -> bool:
        return channel_id not in self.children

    def violate(self, rule: str, text: str) -> None:
        self.violations.append(rule)


def looked(fleet: FakeFleet, *numbers: int, spec: int = 2, seconds: float = 5.0) -> Course:
    """The course after looks at these numbers."""
    course = Course(fleet)  # type: ignore[arg-type]  # - what it asks for is there
    for number in numbers:
        found = {"spec": {"replicas": spec}, "status": {"autoscaling": {"desiredReplicas": number}}}
        course.look(found, number)
        fleet.loop.now += seconds
    return course


def test_a_course_up_and_down_is_fine_and_counted() -> None:
    fleet = FakeFleet(CALM)

    course = looked(fleet, 2, 2, 4, 7, 7, 3)
    course.judge()

    assert fleet.violations == []
    assert (course.figures["changes"], course.figures["turns"]) == (3, 1)
    assert course.figures["workers in looks"] == 25


def test_more_workers_than_channels_that_live_are_too_many() -> None:
    fleet = FakeFleet(CALM)

    looked(fleet, 7, 8)

    assert fleet.violations == ["bounds"]


def test_children_that_wait_for_their_parents_are_no_channels_for_more_workers() -> None:
    fleet = FakeFleet(CALM)
    fleet.children = ("c5", "c6")

    looked(fleet, 5, 6)

    assert fleet.violations == ["bounds"]


@pytest.mark.parametrize(("chooser", "found"), [("Auto", ["bounds"]), ("Fixed", []), ("HPA", [])])
def test_only_auto_is_bound(chooser: str, found: list[str]) -> None:
    fleet = FakeFleet(replace(CALM, chooser=chooser))

    looked(fleet, 8)

    assert fleet.violations == found


def test_the_spec_is_the_users() -> None:
    fleet = FakeFleet(CALM)

    looked(fleet, 3, spec=3)

    assert fleet.violations == ["spec"]


def test_a_change_while_no_worker_can_be_asked_is_one_in_the_dark() -> None:
    fleet = FakeFleet(CALM)
    fleet.unreachable_until = 1000.0

    looked(fleet, 2, 2, 3, seconds=PASS_SECONDS)

    assert fleet.violations == ["blind"]


def test_a_pass_under_way_may_end() -> None:
    fleet = FakeFleet(CALM)
    fleet.unreachable_until = 1000.0

    looked(fleet, 2, 2, 3)

    assert fleet.violations == []


def test_flapping_is_unsteady() -> None:
    fleet = FakeFleet(CALM)

    looked(fleet, 2, 3, 2, 3, 2).judge()

    assert fleet.violations == ["unsteady"]


def test_late_is_less_where_nothing_went_wrong() -> None:
    for scenario, found in ((CALM, ["unsteady"]), (FAULTY, [])):
        fleet = FakeFleet(scenario)
        course = looked(fleet, *[2] * 10)
        course.figures["late looks"] = 1

        course.judge()

        assert fleet.violations == found


def test_after_the_load_nothing_is_counted() -> None:
    fleet = FakeFleet(CALM)
    course = looked(fleet, 2)
    course.is_loaded = False

    course.look({"spec": {"replicas": 2}, "status": {}}, 1)

    assert course.figures["looks at the load"] == 1
    assert course.figures["changes"] == 0
