"""The workers' PodMonitor: recorded before it is made, removed before it is forgotten, and never looked for in vain."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.kube.kinds import POD_MONITOR
from ots_tunnel_operator.manifests.pod_monitor import pod_monitor
from ots_tunnel_operator.plan.actions import Action, ApplyObject, Aside, DeleteObject, RecordStatus
from ots_tunnel_operator.plan.monitoring import monitoring
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import SETTINGS, planned, recorded, reported, resource, world

NAME = "flights-copy-workers"
THERE = {"metadata": {"name": NAME}}
REFUSED = Failure(Problem(Reason.POD_MONITOR_FAILED, "no such kind"))


def asked(seen: Any, *, wanted: bool = True, record: str | None = NAME, **changes: Any) -> World:
    spec = {"monitoring": {"podMonitor": wanted}, **changes.pop("spec", {})}
    status = recorded(**({"podMonitor": record} if record else {}))
    return world(resource(status, **spec), pod_monitor=seen, **changes)


def steps(of: World, settings: Settings = SETTINGS) -> tuple[Action, ...]:
    return monitoring(of, settings)


def test_it_is_recorded_before_it_is_made() -> None:
    record, apply = steps(asked(Missing(), record=None))

    assert record == RecordStatus({"podMonitor": NAME})
    assert isinstance(apply, Aside)
    assert isinstance(apply.action, ApplyObject)
    assert apply.action.manifest == pod_monitor(asked(Missing()).resource.object)
    # after a crash in between, or where another client has deleted it
    assert steps(asked(Missing())) == (apply,)
    # one that is there is compared with what is rendered
    assert steps(asked(THERE)) == (apply,)


def test_it_has_the_interval_and_the_labels_of_the_process() -> None:
    settings = Settings(pod_monitor_interval="5s", pod_monitor_labels=(("release", "prometheus"),))
    (apply,) = steps(asked(THERE), settings)

    assert isinstance(apply, Aside)
    assert isinstance(apply.action, ApplyObject)
    found = apply.action.manifest
    assert found["spec"]["podMetricsEndpoints"][0]["interval"] == "5s"
    assert found["metadata"]["labels"]["release"] == "prometheus"


def test_a_label_of_the_process_replaces_none_by_which_children_are_found() -> None:
    of = resource().object
    own = pod_monitor(of)["metadata"]["labels"]

    assert pod_monitor(of, labels=dict.fromkeys(own, "other"))["metadata"]["labels"] == own


def test_it_is_forgotten_only_once_it_is_gone() -> None:
    assert steps(asked(THERE, wanted=False)) == (Aside(DeleteObject(POD_MONITOR, NAME)),)
    assert steps(asked(Missing(), wanted=False)) == (RecordStatus({"podMonitor": None}),)
    # one that a finalizer holds is deleted once
    held = {"metadata": {"name": NAME, "deletionTimestamp": "2027-01-15T08:00:00Z", "finalizers": ["x/y"]}}
    assert steps(asked(held, wanted=False)) == ()


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("seen", [Unread(), REFUSED], ids=["unread", "refused"])
def test_nothing_is_done_about_one_that_cannot_be_read(seen: Any, wanted: bool) -> None:
    assert steps(asked(seen, wanted=wanted)) == ()


def test_it_waits_for_the_deployment() -> None:
    assert steps(asked(Missing(), record=None, children={})) == ()
    assert steps(asked(THERE, wanted=False, children={})) != ()


def test_an_object_without_workers_has_none() -> None:
    spark = {"engine": {"baseData": "Spark"}, "source__tunnel__type": "BaseData"}

    assert steps(asked(THERE, spec=spark)) == (Aside(DeleteObject(POD_MONITOR, NAME)),)


@pytest.mark.parametrize("suspend", [True, False])
def test_it_is_the_last_of_the_actions_in_every_state(suspend: bool) -> None:
    last = planned(asked(Missing(), spec={"suspend": suspend})).actions[-1]

    assert isinstance(last, Aside)


def condition(of: World, kind: str) -> tuple[str, str]:
    (found,) = [item for item in reported(of)["conditions"] if item["type"] == kind]
    return found["status"], found["reason"]


def test_one_that_cannot_be_made_degrades_the_object_which_stays_ready() -> None:
    assert condition(asked(REFUSED), "Degraded") == ("True", "PodMonitorFailed")
    assert condition(asked(REFUSED), "Ready") == ("True", "Consuming")
    assert condition(asked(THERE), "Degraded") == ("False", "AsExpected")


def test_a_fault_of_the_flow_goes_before_it() -> None:
    failing = asked(REFUSED, foreign_since={"stranger": 0.0})

    assert condition(failing, "Degraded") == ("True", "ForeignClient")


def test_the_status_keeps_its_name() -> None:
    assert reported(asked(THERE))["podMonitor"] == NAME
    assert "podMonitor" not in reported(asked(Unread(), wanted=False, record=None))
