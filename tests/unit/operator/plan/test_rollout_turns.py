"""When the workers of an object become those of this release: in turn; an edit of the object never waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator import names
from ots_tunnel_operator.diagnosis import pod_template_refused
from ots_tunnel_operator.manifests.worker_deployment import deployment as rendered
from ots_tunnel_operator.manifests.worker_document import worker_config
from ots_tunnel_operator.plan.actions import Action, ApplyObject, CheckName, Plan, SetReplicas, TryObject, TryTemplate
from ots_tunnel_operator.plan.planner import plan
from ots_tunnel_operator.plan.rollout import refused
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.report.notices import notices
from ots_tunnel_operator.report.status import build_status
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.world.pod import Container, Origin
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import RolloutTurn, World
from tests.support.operator.worlds import (
    NOW,
    SETTINGS,
    TUNNEL_ID,
    UID,
    assessed,
    pod,
    recorded,
    report_channel,
    resource,
    world,
)

NEXT = replace(SETTINGS, worker_image="worker:2", rollout_budget=2)
ALONE = RolloutTurn()
WAITING, ROLLING = ("True", "RolloutWaiting"), ("True", "RollingWorkers")
STUCK = ("True", "RolloutStuck")


def deployed(of: Resource, replicas: int = 1, image: str = "worker:1", /, **status: Any) -> dict[tuple[str, str], Any]:
    """The Deployment that a release with this image has applied, at rest."""
    body = rendered(of.object, worker_config(of.object, TUNNEL_ID), image, replicas)
    body["metadata"] |= {"generation": 1, "uid": UID}
    found = {"replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas, "observedGeneration": 1}
    return {("Deployment", "flights-copy"): body | {"status": found | status}}


def old(said: tuple[str, str] | None = None, *, turn: RolloutTurn = ALONE, **changes: Any) -> World:
    """An object whose workers are those of the release before; `said` is Progressing in its status."""
    before = resource(recorded())
    progress = [{"type": "Progressing", "status": said[0], "reason": said[1]}] if said else []
    now = resource(recorded(observedGeneration=3, conditions=progress), **changes)
    return world(now, children=deployed(before), rollout_turn=turn)


def planned(of: World, settings: Settings = NEXT) -> Plan:
    return plan(of, assessed(of), settings)


def applied(found: Plan) -> list[str]:
    """Images that the plan applies."""
    manifests = [one.manifest for one in found.actions if isinstance(one, ApplyObject)]
    templates = [one["spec"]["template"] for one in manifests if one["kind"] == "Deployment"]
    return [template["spec"]["containers"][0]["image"] for template in templates]


def told(found: Plan) -> list[Action]:
    """What the plan does to the workers: not to what is beside them, such as a PodDisruptionBudget, nor looks."""
    beside = {"PodDisruptionBudget", "ServiceAccount"}
    acts = [one for one in found.actions if not isinstance(one, CheckName)]
    return [one for one in acts if not (isinstance(one, ApplyObject) and one.manifest["kind"] in beside)]


def looked_up(found: Plan) -> list[str]:
    """The kinds whose names are looked up before the workers are touched."""
    return [one.manifest["kind"] for one in found.actions if isinstance(one, CheckName)]


def progress(of: World, settings: Settings = NEXT) -> dict[str, Any]:
    status = build_status(of, assessed(of), planned(of, settings))
    return {item["type"]: item for item in status["conditions"]}


def test_an_object_first_says_that_it_waits() -> None:
    found = planned(old())

    assert told(found) == []
    conditions = progress(old())
    assert (conditions["Progressing"]["status"], conditions["Progressing"]["reason"]) == WAITING
    assert conditions["Progressing"]["message"].startswith(
        "the workers of this release wait for their turn: operator.rolloutBudget lets 2 objects roll at once; see "
    )
    # its workers do what they did before
    assert (conditions["Ready"]["status"], conditions["Ready"]["reason"]) == ("True", "Consuming")


@pytest.mark.parametrize(
    ("rolling", "ahead", "rolls"), [(0, 0, True), (1, 0, True), (0, 1, True), (1, 1, False), (2, 0, False)]
)
def test_it_rolls_when_the_budget_has_room(rolling: int, ahead: int, rolls: bool) -> None:
    found = planned(old(WAITING, turn=RolloutTurn(rolling, ahead)))

    assert applied(found) == (["worker:2"] if rolls else [])
    assert (found.held is None) == rolls
    if rolls:
        # the status says so in the same pass, so that its place stays taken
        assert found.wait is not None
        assert (found.wait.reason, found.wait.message) == ("RollingWorkers", "rolling out 0 of 1")


def test_who_has_said_that_it_rolls_has_its_place() -> None:
    """The operator died after the status, or the API server refused the Deployment."""
    assert applied(planned(old(ROLLING, turn=RolloutTurn(rolling=5)))) == ["worker:2"]


def test_an_edit_never_waits() -> None:
    changed = old(turn=RolloutTurn(rolling=5), workers__lanesPerChannel=2)

    assert applied(planned(replace(changed, resource=of_generation(4, changed.resource)))) == ["worker:2"]
    # the same difference without an edit is one of the release, such as another default
    assert applied(planned(changed)) == []


def test_another_number_of_workers_is_no_edit_of_the_template() -> None:
    scaled = old(replicas=3)
    scaled = replace(scaled, resource=of_generation(4, scaled.resource))
    found = planned(scaled)

    assert told(found) == [SetReplicas(3)]
    assert found.held is not None
    assert told(planned(replace(scaled, children=deployed(resource(recorded()), 3)))) == []


def test_an_image_of_its_own_is_not_replaced_by_a_release() -> None:
    pinned = resource(recorded(observedGeneration=3), workers__image="mine:1")
    found = planned(world(pinned, children=deployed(pinned)))

    assert (applied(found), found.held, found.wait) == (["mine:1"], None, None)


def test_what_an_earlier_release_applied_is_edited_where_its_status_is_older() -> None:
    before = old()
    metadata = before.children["Deployment", "flights-copy"]["metadata"]
    metadata["annotations"] = {}

    assert applied(planned(before)) == []
    unseen = replace(before.resource, status=recorded(observedGeneration=2))
    assert applied(planned(replace(before, resource=unseen))) == ["worker:2"]


@pytest.mark.parametrize("replicas", [0, 1])
def test_without_workers_there_is_nothing_to_roll(replicas: int) -> None:
    """None are wanted, or none run yet."""
    of = resource(recorded(observedGeneration=3), replicas=replicas)
    found = planned(world(of, children=deployed(of, 1 - replicas), rollout_turn=RolloutTurn(rolling=5)))

    assert applied(found) == ["worker:2"]
    assert found.held is None
    assert applied(planned(world(of, children={}, pods=(), rollout_turn=RolloutTurn(rolling=5)))) == ["worker:2"]


def test_one_that_rolls_anyway_takes_the_new_workers_with_it() -> None:
    mid = old(("True", "RolloutStuck"), turn=RolloutTurn(rolling=5))
    mid = replace(mid, children=deployed(resource(recorded()), 1, "worker:1", replicas=2, updatedReplicas=1))

    assert applied(planned(mid)) == ["worker:2"]


def test_a_rollout_that_does_not_go_on_is_told_and_gives_its_place_up() -> None:
    of = resource(recorded(observedGeneration=3))
    given_up = [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]
    children = deployed(of, 1, "worker:2", replicas=2, updatedReplicas=1, conditions=given_up)
    broken = pod("pod-2", ready=False, message="ImagePullBackOff: no such image")
    stuck = world(of, children=children, pods=(pod("pod-1", report_channel("c1")), broken))

    found = progress(stuck)["Progressing"]
    assert (found["status"], found["reason"]) == ("True", "RolloutStuck")
    assert found["message"].startswith(
        "the former workers keep running; new pod: ImagePullBackOff: no such image; see "
    )
    (event,) = [one for one in notices((), [found]) if one.reason == "RolloutStuck"]
    assert event.kind == "Warning"
    # the controller keeps the condition for a while after the end
    over = deployed(of, 1, "worker:2", conditions=given_up)
    assert progress(world(of, children=over))["Progressing"]["reason"] == "AsExpected"


def test_a_rollout_that_somebody_has_paused_gives_its_place_up() -> None:
    """The Deployment's controller gives none up while it is paused."""
    of = resource(recorded(observedGeneration=3))
    children = deployed(of, 1, "worker:2", replicas=2, updatedReplicas=1)
    children["Deployment", "flights-copy"]["spec"]["paused"] = True

    found = progress(world(of, children=children))["Progressing"]
    assert (found["status"], found["reason"]) == STUCK
    assert "paused; kubectl rollout resume deployment/flights-copy lets it go on; see " in found["message"]


ENDS = "OOMKilled with exit code 137"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "RolloutStuck"),
        ({"ready": False}, "RolloutStuck"),
        ({"message": ""}, "RolloutStuck"),
        ({"created": NOW - 629.0}, "RollingWorkers"),
        ({"restarts": 2}, "RollingWorkers"),
        ({"container": Container(started=NOW - 600.0)}, "RollingWorkers"),
        ({"deleting": True}, "RollingWorkers"),
        ({"template": "old"}, "RollingWorkers"),
    ],
)
def test_a_new_worker_that_is_ready_for_a_moment_in_each_life_is_no_progress(
    changes: dict[str, Any], reason: str
) -> None:
    """To the Deployment's controller each of these moments is some, so that it never gives the rollout up."""
    of = resource(recorded(observedGeneration=3))
    ended = {"restarts": 3, "created": NOW - 630.0, "template": "new", "message": ENDS}
    container = Container(started=NOW - 5.0)
    former = pod("pod-1", report_channel("c1"), created=NOW - 9000.0, template="old")
    new = pod("pod-2", **({"container": container} | ended | changes))
    newest = pod("pod-3", created=NOW - 5.0, template="new", ready=False)
    children = deployed(of, 1, "worker:2", replicas=2, updatedReplicas=1)

    found = progress(world(of, children=children, pods=(former, new, newest)))["Progressing"]

    assert found["reason"] == reason
    told = changes.get("message", ENDS) or "its container ends again and again"
    assert (f"the former workers keep running; new pod: {told}" in found["message"]) == (reason == "RolloutStuck")


@pytest.mark.parametrize(("image", "reason"), [("worker:1", "RollingWorkers"), ("worker:2", "RolloutStuck")])
def test_a_former_worker_that_was_made_again_in_the_middle_is_not_taken_for_a_new_one(image: str, reason: str) -> None:
    """A node that is lost makes the controller replace one of the former template: it is the youngest pod then."""
    of = resource(recorded(observedGeneration=3))
    children = deployed(of, 2, "worker:2", replicas=3, updatedReplicas=1)
    made = Origin.of(children["Deployment", "flights-copy"]["spec"]["template"])
    ends = pod(
        "pod-2",
        created=NOW - 650.0,
        template=image,
        origin=replace(made, image=image),
        restarts=5,
        message=ENDS,
        container=Container(started=NOW - 5.0),
    )
    new = pod("pod-3", created=NOW - 700.0, template="worker:2", origin=made)

    found = progress(world(of, children=children, pods=(ends, new)))["Progressing"]

    assert found["reason"] == reason
    assert (ENDS in found["message"]) == (reason == "RolloutStuck")


REFUSED = pod_template_refused("denied by a policy", has_own_part=True)
SELECTED = {"podTemplate": {"spec": {"nodeSelector": {"disk": "ssd"}}}}


FAILED = ApplyObject({"kind": "NetworkPolicy"})
TAKEN = Problem(Reason.NAME_CONFLICT, "NetworkPolicy 'flights-copy-workers' belongs to something else")


@pytest.mark.parametrize("said", [WAITING, ROLLING])
@pytest.mark.parametrize("problem", [REFUSED, TAKEN])
def test_what_a_person_has_to_end_takes_no_place(said: tuple[str, str], problem: Problem) -> None:
    """Three such objects would keep the workers of all others at the former release, for ever."""
    of = old(said)

    found = refused(planned(of), of, problem, FAILED, lasts=True)

    assert found.wait is not None
    assert (found.wait.reason, found.held, found.problem) == ("RolloutStuck", None, problem)


def test_it_is_tried_again_without_a_place_and_then_waits_for_its_turn() -> None:
    """So the refusal stays told while it stands."""
    of = templated(STUCK)
    found = planned(of)

    assert [type(one) for one in told(found)] == [TryTemplate, TryObject]
    assert looked_up(found) == ["ConfigMap", "Deployment"]
    assert found.held is not None
    assert found.held.reason == "RolloutWaiting"
    after = refused(found, of, REFUSED, FAILED, lasts=True)
    assert after.wait is not None
    assert (after.wait.reason, after.held) == ("RolloutStuck", None)
    # who only waits calls nobody, because many objects begin to wait at once: names are looked up in memory
    waiting = planned(templated(WAITING, turn=RolloutTurn(rolling=5)))
    assert (told(waiting), looked_up(waiting)) == ([], ["ConfigMap", "Deployment"])


def test_what_may_be_over_in_the_next_pass_costs_no_place() -> None:
    of, problem = old(ROLLING), Problem(Reason.API_SERVER_REFUSED, "no answer")

    found = refused(planned(of), of, problem, FAILED, lasts=False)

    assert found.wait is not None
    assert (found.wait.reason, found.problem) == ("RollingWorkers", problem)


def test_a_refusal_in_the_middle_of_a_rollout_keeps_its_place() -> None:
    mid = replace(old(ROLLING), children=deployed(resource(recorded()), 1, "worker:1", replicas=2, updatedReplicas=1))

    found = refused(planned(mid), mid, REFUSED, FAILED, lasts=True)

    assert found.wait is not None
    assert found.wait.reason == "RollingWorkers"


def test_a_refusal_without_a_rollout_is_only_told() -> None:
    of = resource(recorded(observedGeneration=3))
    at_rest = world(of, children=deployed(of, 1, "worker:2"))

    found = refused(planned(at_rest), at_rest, REFUSED, FAILED, lasts=True)

    assert (found.wait, found.held, found.problem) == (None, None, REFUSED)


def templated(said: tuple[str, str], turn: RolloutTurn = ALONE) -> World:
    """An object with a part of its own in the template."""
    of = old(said, turn=turn, workers=SELECTED)
    return replace(of, children=deployed(resource(recorded(), workers=SELECTED)))


def test_a_rollout_and_fewer_workers_are_told_together() -> None:
    of = resource(recorded(observedGeneration=3), replicas=1)
    children = deployed(of, 3, "worker:2", replicas=4, updatedReplicas=1)
    pods = (pod("pod-1", report_channel("c1")), pod("pod-2"), pod("pod-3"), pod("pod-4"))

    found = planned(world(of, children=children, pods=pods))

    assert found.wait is not None
    assert (found.wait.reason, found.wait.message) == (
        "RollingWorkers",
        "rolling out 1 of 3; then from 3 to 1 workers",
    )


def test_both_annotations_are_of_the_deployment_and_not_of_its_pods() -> None:
    body = next(iter(deployed(resource()).values()))

    assert set(body["metadata"]["annotations"]) == {names.ANNOTATION_TEMPLATE_HASH, names.ANNOTATION_MADE_FROM}
    assert set(body["spec"]["template"]["metadata"]["annotations"]) == {names.ANNOTATION_CONFIG_HASH}


def of_generation(generation: int, of: Resource) -> Resource:
    """The object after an edit."""
    metadata = of.object.metadata.model_copy(update={"generation": generation})
    return Resource(of.object.model_copy(update={"metadata": metadata}), of.status)
