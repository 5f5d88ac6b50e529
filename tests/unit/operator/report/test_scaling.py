"""What the status, the conditions and the events say about the number of workers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator.api.status import TunnelObjectStatus
from ots_tunnel_operator.autoscale.history import History
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.report.notices import Notice, notices, record_notices
from ots_tunnel_operator.report.status_change import is_different, is_urgent
from ots_tunnel_operator.report.unobserved import deleting_status, unobserved_status
from ots_tunnel_operator.world.absence import Unread
from ots_tunnel_operator.world.world import World
from tests.support.operator.scaled_worlds import by_auto, looked, scaled
from tests.support.operator.worlds import NOW, planned, recorded, reported, resource, world


def value(status: dict[str, Any], kind: str) -> tuple[str, str]:
    found = next(item for item in status["conditions"] if item["type"] == kind)
    return found["status"], found["reason"]


UNSEEN = Problem(Reason.INTERNAL_ERROR, "nobody looked")


def with_condition(of: World, kind: str, status: str) -> World:
    """The world of an object whose stored status has this condition."""
    stored = {**of.resource.status, "conditions": [{"type": kind, "status": status, "reason": "X"}]}
    return replace(of, resource=replace(of.resource, status=stored))


def test_the_status_has_what_the_definition_has() -> None:
    status = reported(looked(scaled(lag=143, busy=96), 5))

    TunnelObjectStatus.model_validate(status)
    assert status["autoscaling"]["desiredReplicas"] == 4
    assert status["autoscaling"]["limitedBy"] == "None"


def test_without_autoscaling_the_definition_of_the_last_release_takes_the_status() -> None:
    """It knows neither condition, and refuses the whole status where it finds one."""
    status = reported(world())

    assert status["autoscaling"] == {"desiredReplicas": 1}
    assert {item["type"] for item in status["conditions"]}.isdisjoint({"ScalingActive", "ScalingLimited"})
    for later in (
        unobserved_status(status, UNSEEN, generation=1, observed=None, now=NOW),
        deleting_status(status, "", generation=1, now=NOW),
    ):
        assert {item["type"] for item in later["conditions"]}.isdisjoint({"ScalingActive", "ScalingLimited"})


@pytest.mark.parametrize(
    "of", [world(resource(recorded(), autoscaling={})), with_condition(world(), "ScalingActive", "True")]
)
def test_a_disabled_autoscaler_says_so_and_so_does_one_that_was_removed(of: World) -> None:
    status = reported(of)

    assert value(status, "ScalingActive") == ("False", "ScalingDisabled")
    assert value(status, "ScalingLimited") == ("False", "AsExpected")
    unseen = unobserved_status(status, UNSEEN, generation=1, observed=None, now=NOW)
    assert value(unseen, "ScalingActive") == ("Unknown", UNSEEN.reason)


def test_with_figures_it_is_active() -> None:
    status = reported(looked(scaled(), 3))

    assert value(status, "ScalingActive") == ("True", "ValidMetricFound")
    assert value(status, "ScalingLimited") == ("False", "AsExpected")


def test_while_workers_are_stopped_it_is_not() -> None:
    assert value(reported(scaled(suspend=True)), "ScalingActive") == ("False", "ScalingStopped")


@pytest.mark.parametrize(
    ("before", "misses", "found"),
    [
        ("", 0, "Unknown"),
        ("True", 0, "True"),
        ("True", 1, "True"),
        ("True", 2, "False"),
        ("False", 0, "False"),
        ("Unknown", 1, "Unknown"),
    ],
)
def test_one_look_without_a_lag_says_nothing_and_three_do(before: str, misses: int, found: str) -> None:
    blind = replace(scaled(), tunnel=Unread(), scaling=History(misses=misses))

    assert value(reported(with_condition(blind, "ScalingActive", before)), "ScalingActive")[0] == found


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (scaled(lag=500, busy=99, autoscaling={"maxReplicas": 2}), "AtMax"),
        (scaled(lag=500, busy=99, channels=2), "ChannelBound"),
        (scaled(lag=500, busy=99, status=by_auto(2, ago=600, reason="Ineffective")), "Ineffective"),
        (scaled(replicas=9, workers=6, status=by_auto(6)), "ReplicasManagedByAutoscaler"),
    ],
)
def test_a_lasting_limit_is_a_condition(of: World, reason: str) -> None:
    assert value(reported(looked(of, 5) if reason != "ReplicasManagedByAutoscaler" else of), "ScalingLimited") == (
        "True",
        reason,
    )


def condition(kind: str, status: str, reason: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": "m"}


@pytest.mark.parametrize(
    ("current", "warned"),
    [
        (condition("ScalingLimited", "True", "ReplicasManagedByAutoscaler"), True),
        (condition("ScalingLimited", "True", "Ineffective"), True),
        (condition("ScalingLimited", "True", "AtMax"), False),
        (condition("ScalingActive", "False", "MetricsUnavailable"), True),
        (condition("ScalingActive", "Unknown", "MetricsUnavailable"), False),
        (condition("ScalingActive", "False", "ScalingDisabled"), False),
    ],
)
def test_what_a_user_should_act_on_is_a_warning(current: dict[str, Any], *, warned: bool) -> None:
    found = notices((), [current])

    assert found == ((Notice("Warning", current["reason"], "m"),) if warned else ())


@pytest.mark.parametrize(("before", "after", "reason"), [(2, 6, "ScaledUp"), (6, 2, "ScaledDown")])
def test_a_change_is_an_event_with_its_figures(before: int, after: int, reason: str) -> None:
    record = by_auto(after, replicas=before)

    assert record_notices({"autoscaling": record}, {}) == (
        Notice("Normal", reason, f"from {before} to {after} workers, Backlog: lag 143 s"),
    )


def test_a_change_of_the_number_is_written_at_once_and_a_recommendation_is_not() -> None:
    before = {"autoscaling": by_auto(4) | {"recommendedReplicas": 4, "limitedBy": "None"}}
    wish = {"autoscaling": before["autoscaling"] | {"recommendedReplicas": 6, "limitedBy": "Stabilization"}}

    assert is_urgent(before, {"autoscaling": by_auto(6)})
    assert is_different(before, wish)
    assert not is_urgent(before, wish)


def test_an_idle_object_needs_no_write() -> None:
    """Also after a restart of the operator, which has forgotten everything (docs/architecture.md rule 9)."""
    idle = scaled(replicas=1, busy=0)
    settled = looked(idle, 50)
    status = reported(settled)
    stored = replace(settled.resource, status=settled.resource.status | status)

    for scaling in (settled.scaling, None):
        later = replace(settled, resource=stored, scaling=scaling)
        for times in range(45):
            after = reported(looked(later, times))
            assert not is_urgent(status, after)
            assert not is_different(status, after)


def test_a_number_beyond_what_is_ready_shows_as_scaling() -> None:
    of = scaled(workers=2, status=by_auto(4, ago=5))

    assert planned(of).replicas == 4
    assert value(reported(of), "Progressing") == ("True", "Scaling")
    assert NOW
