"""How many workers are wanted, and what the status says about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelStatus
from ots_tunnel_operator.api.autoscaling import Autoscaling
from ots_tunnel_operator.assess.scaling.scaling import FOREIGN_SECONDS, Scaling
from ots_tunnel_operator.autoscale.history import History
from ots_tunnel_operator.autoscale.limit import Limit
from ots_tunnel_operator.plan.actions import ApplyObject, RecordStatus
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Missing, Unread
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.scaled_worlds import by_auto, looked, scaled
from tests.support.operator.spark_worlds import progress_record, spark_world
from tests.support.operator.worlds import (
    NOW,
    assessed,
    channel,
    deployment,
    description,
    planned,
    recorded,
    resource,
    world,
)


def scaling(of: World) -> Scaling:
    return assessed(of).scaling


def test_without_autoscaling_it_is_the_number_of_the_spec() -> None:
    found = scaling(world())

    assert found == Scaling(1, {"desiredReplicas": 1})


def test_auto_adds_workers_when_it_is_behind() -> None:
    of = looked(scaled(lag=143, busy=96), 5)

    found = scaling(of)

    assert found.wanted == 4
    assert found.record is not None
    assert found.document["lastDecision"] == {
        "time": timestamp(of.now),
        "from": 2,
        "to": 4,
        "reason": "Backlog",
        "message": "lag 143 s (target 60 s), 1.00 s of changes consumed a second, 2 workers busy 96% (target 70%): "
        "3.3 workers are needed",
        "generation": 3,
    }


@pytest.mark.parametrize(("lag", "wanted"), [(650, 2), (900, 3)])
def test_what_a_file_holds_by_design_is_no_lag(lag: int, wanted: int) -> None:
    sink = {"files": {"url": "s3://shop/p", "credentials": {"secretRef": {"name": "k"}}, "maxFileSeconds": 600}}

    of = scaled(lag=lag, busy=50, sink=sink)
    of = replace(of, resource=replace(of.resource, status=recorded(destination={})))

    found = scaling(looked(of, 5))

    assert found.wanted == wanted


def test_the_decision_is_recorded_before_it_is_carried_out() -> None:
    of = looked(scaled(lag=143, busy=96), 5)

    first, *applied = planned(of).actions

    assert isinstance(first, RecordStatus)
    assert first.change["autoscaling"]["desiredReplicas"] == 4
    assert first.change["autoscaling"]["specReplicas"] == 2
    manifests = [action.manifest for action in applied if isinstance(action, ApplyObject)]
    assert len(manifests) == len(applied)
    (workers,) = (manifest for manifest in manifests if manifest["kind"] == "Deployment")
    assert workers["spec"]["replicas"] == 4


def test_a_restarted_operator_carries_it_out_from_the_record() -> None:
    of = scaled(lag=143, busy=96, workers=2, status=by_auto(4, ago=5))

    decided = planned(of)

    assert not any(isinstance(action, RecordStatus) for action in decided.actions)
    assert decided.replicas == 4


def test_a_restarted_operator_shows_what_was_shown() -> None:
    """The restart of an operator writes nothing about an idle object."""
    idle = scaled(replicas=1, busy=0)
    shown = scaling(looked(idle, 5)).document
    restarted = scaled(replicas=1, busy=0, status=dict(shown))

    documents = [scaling(looked(restarted, times)).document for times in range(5)]

    assert shown["limitedBy"] == "Min"
    assert documents == [shown] * 5


def test_advise_changes_nothing_and_says_what_auto_would_do() -> None:
    found = scaling(looked(scaled("Advise", lag=143, busy=96), 6))

    assert (found.wanted, found.record) == (2, None)
    assert found.document == {
        "desiredReplicas": 2,
        "recommendedReplicas": 4,
        "usefulMaxReplicas": 8,
        "limitedBy": "None",
    }


def test_advise_goes_on_with_its_figures() -> None:
    """What it says is not carried out, so that figures from before it count."""
    of = scaled("Advise", lag=143, busy=96)

    assert [scaling(looked(of, times)).pace for times in (6, 7, 8)] == [1.0] * 3


def test_advise_beside_a_number_outside_its_bounds_says_the_bound() -> None:
    found = scaling(scaled("Advise", autoscaling={"minReplicas": 4}))

    assert (found.wanted, found.document["recommendedReplicas"]) == (2, 4)


def test_bounds_count_at_once() -> None:
    found = scaling(scaled(autoscaling={"minReplicas": 3}))

    assert found.wanted == 3
    assert found.document["lastDecision"]["reason"] == "Bounds"


def copied_by_spark() -> World:
    found = spark_world(progress_record(1, 4))
    spec = found.resource.spec.model_copy(update={"autoscaling": Autoscaling(mode="Auto")})
    obj = found.resource.object.model_copy(update={"spec": spec})
    return replace(found, resource=replace(found.resource, object=obj))


NO_VOLUME = {"onPermanentError": "DeadLetter", "deadLetter": {"files": {"url": "file:///dead"}}}

STOPPED: dict[str, tuple[World, str]] = {
    "suspended": (scaled(status=by_auto(6), suspend=True), "spec.suspend is true"),
    "deleted": (
        replace(scaled(), resource=resource({}, deleted=True, replicas=2, autoscaling={"mode": "Auto"})),
        "the object is being deleted",
    ),
    "a tunnel that is gone": (replace(scaled(), tunnel=Missing()), "TunnelNotFound stops the workers"),
    "a spec that nobody can carry out": (
        scaled(status=by_auto(2), delivery=NO_VOLUME),
        "InvalidSpec leaves the workers and their number as they are",
    ),
    "no tunnel yet": (
        replace(scaled(), resource=resource({}, replicas=2, autoscaling={"mode": "Auto"}), tunnel=Missing()),
        "there is no tunnel yet",
    ),
    "delivered": (
        scaled(source__tunnel__type="BaseData"),
        "everything is delivered",
    ),
    "spark": (copied_by_spark(), "Spark copies existing rows"),
    "zero": (scaled(replicas=0, workers=2, status=by_auto(6)), "spec.replicas is 0"),
}


@pytest.mark.parametrize("case", STOPPED)
def test_nothing_is_computed_while_workers_are_stopped(case: str) -> None:
    of, why = STOPPED[case]
    if case == "delivered":
        of = replace(of, tunnel=Tunnel(description(channel("c0", ChannelStatus.TERMINATED))))

    found = scaling(replace(of, scaling=History(misses=2)))

    assert (found.stopped, found.limit, found.misses) == (why, Limit.STOPPED, 0)
    assert found.record is None
    assert found.history is not None
    assert found.history.misses == 0
    assert found.document["limitedBy"] == "Stopped"


def test_a_suspended_object_keeps_its_number() -> None:
    found = scaling(scaled(status=by_auto(6), suspend=True))

    assert found.document == by_auto(6) | {"limitedBy": "Stopped"}


def test_a_number_of_zero_forgets_what_auto_had_decided() -> None:
    """Another number in spec.replicas then is the one to begin with."""
    found = scaling(scaled(replicas=0, workers=2, status=by_auto(6)))

    assert found.document == {"desiredReplicas": 0, "limitedBy": "Stopped"}


def test_after_auto_the_record_stays_while_its_number_counts() -> None:
    assert scaling(scaled("Disabled", workers=6, status=by_auto(6))).document == by_auto(6)
    assert scaling(scaled("Disabled", replicas=3, workers=6, status=by_auto(6))).document == {"desiredReplicas": 3}


def test_another_client_is_shown_for_some_minutes() -> None:
    of = scaled(replicas=9, workers=6, status=by_auto(6))
    first = scaling(of)
    after = scaled(replicas=9, workers=6, status=dict(first.document))

    soon = scaling(replace(after, scaling=first.history, now=NOW + FOREIGN_SECONDS - 1))
    late = scaling(replace(after, scaling=first.history, now=NOW + FOREIGN_SECONDS))

    assert "spec.replicas was changed from 2 to 9" in first.foreign
    assert first.document["specReplicas"] == 9
    assert (first.limit, soon.limit) == (Limit.FOREIGN_WRITER, Limit.FOREIGN_WRITER)
    assert soon.foreign == first.foreign
    assert late.foreign == ""
    assert late.limit is not Limit.FOREIGN_WRITER


def test_an_unknown_lag_holds() -> None:
    found = scaling(looked(replace(scaled(status=by_auto(2)), tunnel=Unread()), 3))

    assert (found.wanted, found.misses, found.is_blind) == (2, 4, True)
    assert found.document["limitedBy"] == "MetricsUnavailable"
    assert "usefulMaxReplicas" not in found.document


def test_the_pace_is_known_after_some_looks() -> None:
    assert scaling(world()).pace is None
    assert scaling(scaled()).pace is None
    assert scaling(looked(scaled(), 3)).pace == 1.0


def test_a_rollout_holds() -> None:
    of = replace(scaled(lag=500, busy=99), children=deployment(2, updatedReplicas=1))

    found: Any = scaling(looked(of, 20))

    assert (found.wanted, found.document["limitedBy"]) == (2, "Rebalancing")
