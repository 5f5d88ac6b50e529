"""The first end of a worker that no restart can help stops all workers, until a next attempt may differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator.assess.verdict import recorded_verdict, verdict_document
from ots_tunnel_operator.assess.worker_pods.final_end import attempt, find_final_end
from ots_tunnel_operator.names import ANNOTATION_CONFIG_HASH, ANNOTATION_RESTARTED_AT
from ots_tunnel_operator.plan.actions import ScaleDown
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.pod import Container, ContainerEnd, Origin, Pod
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import NOW, deployment, planned, pod, recorded, reported, resource, world

REFUSED = ContainerEnd(4, "Error", "SinkRejected: OTSOutOfRowSizeLimit: the row is too large")
#: Of the object of `worlds.resource`, which is of generation 3.
SEEN: dict[str, Any] = {"observedGeneration": 3}


def ended(name: str = "pod-1", end: ContainerEnd = REFUSED, **changes: Any) -> Pod:
    return pod(name, ready=False, container=Container(end=end), **changes)


def refused(*pods: Pod, status: dict[str, Any] = SEEN, **changes: Any) -> World:
    return world(resource(recorded(**status)), pods=pods or (ended(),), **changes)


def condition(status: dict[str, Any], kind: str) -> tuple[str, str]:
    return next((item["status"], item["reason"]) for item in status["conditions"] if item["type"] == kind)


def after(before: World, **changes: Any) -> World:
    """The next look, after the workers have been stopped and their pods have gone."""
    status = reported(before)
    kept = {key: status[key] for key in ("conditions", "verdict", "observedGeneration") if key in status}
    of = changes.pop("of", None) or resource(recorded(**kept))
    return replace(before, resource=of, pods=(), children=deployment(0), **changes)


def test_the_first_one_stops_the_workers_and_says_why() -> None:
    status, found = reported(refused()), planned(refused())

    assert found.actions == (ScaleDown(),)
    assert status["phase"] == "Failed"
    for kind in ("Stalled", "Degraded"):
        assert condition(status, kind) == ("True", "SinkRejected")
    for kind in ("Ready", "SinkReady"):
        assert condition(status, kind) == ("False", "SinkRejected")
    assert status["verdict"]["reason"] == "SinkRejected"
    assert status["verdict"]["attempt"]


def test_it_stands_when_the_pods_are_gone() -> None:
    later = after(refused())

    assert planned(later).replicas == 0
    assert condition(reported(later), "Stalled") == ("True", "SinkRejected")
    assert reported(later)["verdict"] == reported(refused())["verdict"]


def test_it_stands_behind_another_problem_and_where_nothing_can_be_seen() -> None:
    hidden = after(refused(), tunnel=Missing())

    assert condition(reported(hidden), "Stalled") == ("True", "TunnelNotFound")
    unread = after(refused(), source_credentials=world().source_credentials, destination=Missing())
    assert planned(unread).replicas == 0


def edited(before: World) -> World:
    found = after(before)
    of = found.resource.object
    anew = of.model_copy(update={"metadata": of.metadata.model_copy(update={"generation": 4})})
    return replace(found, resource=replace(found.resource, object=anew))


def restarted(before: World) -> World:
    children = deployment(0)
    template = {"metadata": {"annotations": {ANNOTATION_RESTARTED_AT: "2026-11-20T08:15:30Z"}}}
    children["Deployment", "flights-copy"]["spec"]["template"] = template
    return replace(after(before), children=children)


def of_another_tunnel(before: World) -> World:
    found = after(before)
    status = dict(found.resource.status) | {"tunnel": {"id": "another"}}
    return replace(found, resource=resource(status))


@pytest.mark.parametrize("make", [edited, restarted])
def test_the_next_attempt_starts_the_workers(make: Any) -> None:
    found = make(refused())

    assert planned(found).problem is None
    assert planned(found).replicas == 1
    assert "verdict" not in reported(found)


def test_the_attempt_is_another_one_after_an_edit_a_restart_and_a_new_tunnel() -> None:
    attempts = [attempt(make(refused())) for make in (after, edited, restarted, of_another_tunnel)]

    assert len(set(attempts)) == 4
    assert attempts[0] == attempt(refused())
    # without a Deployment there was no restart
    assert attempt(replace(refused(), children={})) == attempts[0]


def test_an_expired_tunnel_is_believed_of_a_worker() -> None:
    expired = ContainerEnd(13, "Error", "TunnelExpired: tunnel 'a' has expired")
    found = refused(ended(end=expired))

    assert condition(reported(found), "TunnelReady") == ("False", "TunnelExpired")
    # the description of the tunnel does not show it, and refutes nothing
    assert condition(reported(after(found)), "Stalled") == ("True", "TunnelExpired")


@pytest.mark.parametrize(
    "found",
    [
        refused(ended(deleting=True)),
        refused(ended(created=NOW - 2000)),
        refused(ended(end=ContainerEnd(12, "Error", "AuthFailed: no"))),
        refused(ended(end=ContainerEnd(4, "Error", "SinkRejected: OTSAuthFailed: no"))),
        refused(pod("pod-1")),
        refused(pod("pod-1", container=Container(end=REFUSED, started=NOW - 60))),
        refused(status={"observedGeneration": 2}),
        refused(status={}),
        refused(children={}),
        refused(children=deployment(1, observedGeneration=0)),
        refused(children=deployment(1, updatedReplicas=0)),
        refused(ended("old", template="a", created=NOW - 50), pod("new", template="b", created=NOW - 5)),
    ],
    ids=[
        *("a pod that leaves", "of a former object", "a denied worker", "a denied sink", "no end", "runs again"),
        *("before the edit", "never seen", "no Deployment", "not seen by the controller", "no new pod"),
        "of a former template",
    ],
)
def test_an_end_that_says_nothing_about_the_present_attempt(found: World) -> None:
    assert find_final_end(found) is None


@pytest.mark.parametrize("config", ["former", "present"])
def test_the_youngest_pod_may_be_one_of_the_former_template(config: str) -> None:
    """An edit has corrected the settings, and a node that is lost makes a former worker start anew meanwhile."""
    annotations = {ANNOTATION_CONFIG_HASH: "present"}
    children = deployment(2)
    children["Deployment", "flights-copy"]["spec"]["template"] = {"metadata": {"annotations": annotations}}
    new = pod("new", template="b", origin=Origin(config="present"), created=NOW - 50)
    again = ended("again", template=config, origin=Origin(config=config), created=NOW - 5)

    assert (find_final_end(refused(new, again, children=children)) is None) == (config == "former")


def test_of_several_ends_the_first_pod_is_named() -> None:
    found = find_final_end(refused(ended("pod-2"), ended("pod-1"), pod("pod-3", ready=False)))

    assert found is not None
    assert "pod pod-1:" in found.message


def test_a_verdict_keeps_its_attempt_in_the_status() -> None:
    verdict = Problem(Reason.SINK_REJECTED, "as found", ("SinkReady",), attempt="abc")
    document = verdict_document(verdict)

    assert document == {"reason": "SinkRejected", "message": "as found", "attempt": "abc"}
    assert recorded_verdict({"verdict": document}) == verdict


def test_a_verdict_whose_attempt_was_dropped_is_refuted_by_the_next_look() -> None:
    before = after(refused())
    status = dict(before.resource.status)
    status["verdict"] = {key: value for key, value in status["verdict"].items() if key != "attempt"}

    assert planned(replace(before, resource=resource(status))).replicas == 1
