"""What is wrong with a worker's pod is said at the first sight of it, and does not take turns with anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator.assess.worker_pods.trouble import find_trouble
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.report.notices import notices
from ots_tunnel_operator.world.pod import Container, ContainerEnd, Mounting, Pod
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    NOW,
    deployment,
    pod,
    recorded,
    report_channel,
    reported,
    resource,
    world,
)

DENIED = ContainerEnd(12, "Error", "AuthFailed: instance 'demo' does not accept the AccessKey")
KILLED = ContainerEnd(137, "OOMKilled")
NO_IMAGE = pod(
    "pod-2",
    ready=False,
    phase="Pending",
    container=Container("shop/w:2", waiting="ImagePullBackOff", cause="not found"),
)
NO_MAP = pod(
    "pod-2",
    ready=False,
    phase="Pending",
    container=Container("w:1", waiting="CreateContainerConfigError", cause='configmap "ca" not found'),
)
NO_VOLUME = pod(
    "pod-2",
    ready=False,
    phase="Pending",
    mounting=Mounting(NOW - 300, ("ConfigMap 'authorities'", "Secret 'signing'")),
)
NO_NODE = pod("pod-2", ready=False, phase="Pending", unscheduled="0/3 nodes are available: 3 Insufficient memory.")
EVICTED = pod("pod-0", ready=False, phase="Failed", removed="Evicted: low on memory", removed_time=NOW - 5)
FAILING = pod("pod-2", ready=False, restarts=3, message="Error with exit code 5: OSError: no")
HEALTHY = pod("pod-1", report_channel("c1"))


def ended(end: ContainerEnd, name: str = "pod-2", *, ready: bool = False, since: float | None = None) -> Pod:
    return pod(name, ready=ready, container=Container("w:1", "640Mi", started=since, end=end))


def of(*pods: Pod, wanted: int = 2, **changes: Any) -> World:
    children = deployment(wanted, readyReplicas=sum(pod.ready for pod in pods))
    return world(resource(recorded(), replicas=wanted, **changes), pods=pods, children=children)


def condition(found: World, kind: str) -> tuple[str, str, str]:
    for item in reported(found)["conditions"]:
        if item["type"] == kind:
            return item["status"], item["reason"], item["message"]
    raise KeyError(kind)


@pytest.mark.parametrize(
    ("found", "reason", "says"),
    [
        (ended(KILLED), Reason.OOM_KILLED, ("640Mi", "to 1280Mi")),
        (
            ended(DENIED),
            Reason.AUTH_FAILED,
            ("exit code 12", "does not accept the AccessKey", "spec.source.credentials"),
        ),
        (NO_IMAGE, Reason.IMAGE_PULL_FAILED, ("'shop/w:2'", "not found", "imagePullSecrets")),
        (NO_MAP, Reason.CONTAINER_CONFIG_ERROR, ('configmap "ca" not found', "create what it names")),
        (
            NO_VOLUME,
            Reason.CONTAINER_CONFIG_ERROR,
            ("not attached yet", "ConfigMap 'authorities', Secret 'signing'", "describe pod pod-2"),
        ),
        (NO_NODE, Reason.UNSCHEDULABLE, ("0/3 nodes are available: 3 Insufficient memory.", "add nodes")),
        (EVICTED, Reason.EVICTED, ("Evicted: low on memory", "resources.requests")),
        (FAILING, Reason.WORKERS_FAILING, ("exit code 5: OSError: no", "see its log")),
    ],
)
def test_it_is_said_although_another_worker_runs(found: Pod, reason: Reason, says: tuple[str, ...]) -> None:
    seen = of(HEALTHY, found)

    for kind in ("Ready", "Degraded"):
        status, told, message = condition(seen, kind)
        assert (status, told) == ("False" if kind == "Ready" else "True", reason)
        assert [text for text in (found.name, *says) if text not in message] == []
    # the pods may recover by themselves: nobody is waited for, and the workers run on
    assert condition(seen, "Stalled")[0] == "False"
    assert reported(seen)["phase"] == "Streaming"


def test_less_memory_for_records_is_advised_where_the_limit_stays() -> None:
    """A limit that the template does not set follows from the budget, so that both would become smaller."""
    limited = {"spec": {"containers": [{"name": "worker", "resources": {"limits": {"memory": "640Mi"}}}]}}

    derived, own = (
        condition(of(HEALTHY, ended(KILLED), workers={"podTemplate": template}), "Degraded")[2]
        for template in ({}, limited)
    )

    assert "memoryBudgetBytes" not in derived
    assert "spec.workers.memoryBudgetBytes to less than 268435456" in own


@pytest.mark.parametrize("found", [NO_IMAGE, NO_NODE, EVICTED, ended(KILLED), ended(DENIED)])
def test_it_has_one_warning(found: Pod) -> None:
    before, after = (reported(seen)["conditions"] for seen in (of(HEALTHY, pod("pod-2")), of(HEALTHY, found)))

    told = [notice for notice in notices(before, after) if notice.kind == "Warning"]
    assert [notice.reason for notice in told] == [find_trouble(of(HEALTHY, found)).reason]
    assert not notices(after, after)


def test_a_denied_worker_makes_the_credentials_invalid() -> None:
    assert condition(of(HEALTHY, ended(DENIED)), "CredentialsValid")[:2] == ("False", "AuthFailed")


def test_a_missing_right_waits_for_a_person_and_stops_nothing() -> None:
    found = of(HEALTHY, ended(ContainerEnd(12, "Error", "PermissionDenied: no right")))

    assert condition(found, "Stalled")[:2] == ("True", "AccessDenied")
    assert (reported(found)["phase"], reported(found)["replicas"]) == ("Failed", 2)


def test_a_refused_sink_is_not_ready() -> None:
    found = of(HEALTHY, ended(ContainerEnd(4, "Error", "SinkRejected: OTSAuthFailed: no")))

    assert condition(found, "SinkReady")[:2] == ("False", "SinkDenied")
    assert "verdict" not in reported(found)


def test_what_stops_the_workers_is_no_trouble_beside_them() -> None:
    assert find_trouble(of(HEALTHY, ended(ContainerEnd(4, "Error", "SinkRejected: HTTP 400: no")))) is None


def test_an_image_of_the_spec_is_named_as_its_field() -> None:
    given = find_trouble(of(HEALTHY, NO_IMAGE, workers={"image": "shop/w:2"}))
    default = find_trouble(of(HEALTHY, NO_IMAGE))

    assert given is not None
    assert default is not None
    assert "correct spec.workers.image" in given.message
    assert "correct the image of the operator's release" in default.message


def test_a_kubelet_that_has_named_no_cause_yet() -> None:
    silent = replace(NO_IMAGE, container=Container("w:2", waiting="InvalidImageName"))

    assert "(the kubelet names no cause yet)" in condition(of(HEALTHY, silent), "Degraded")[2]


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("640Mi", "set resources.limits.memory of container 'worker' in spec.workers.podTemplate to 1280Mi"),
        ("1.5Gi", "twice as much"),
        ("", "no limit of its own"),
    ],
)
def test_a_lack_of_memory_says_what_to_set(limit: str, says: str) -> None:
    killed = pod("pod-2", ready=False, container=Container("w:1", limit, end=KILLED))

    assert says in condition(of(HEALTHY, killed), "Degraded")[2]


def test_pods_that_the_api_server_refuses_are_told_without_their_names() -> None:
    def refused(name: str) -> World:
        message = f'pods "{name}" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2'
        failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
        children = deployment(2, conditions=[{"type": "Available", "status": "True"}, failure])
        return replace(of(HEALTHY), children=children)

    status, reason, message = condition(refused("flights-copy-7d4f-abcde"), "Degraded")
    assert (status, reason) == ("True", "PodsRefused")
    assert "pods is forbidden: exceeded quota: small" in message
    assert condition(refused("flights-copy-7d4f-fghij"), "Degraded") == (status, reason, message)


def test_the_last_end_counts_until_the_worker_has_run_for_a_while() -> None:
    def reason(end: ContainerEnd, since: float, **changes: Any) -> str:
        return condition(of(HEALTHY, replace(ended(end, ready=True, since=since), **changes)), "Degraded")[1]

    # refused workers connect first, and are ready for a moment
    assert (reason(DENIED, NOW - 59), reason(DENIED, NOW - 60)) == ("AuthFailed", "AsExpected")
    # memory fills slowly
    assert (reason(KILLED, NOW - 599), reason(KILLED, NOW - 600)) == ("OOMKilled", "AsExpected")
    crashed = ContainerEnd(5, "Error", "OSError: no")
    assert reason(crashed, NOW - 59, restarts=3) == "WorkersFailing"
    assert (reason(crashed, NOW - 60, restarts=3), reason(crashed, NOW - 1, restarts=2)) == ("AsExpected", "AsExpected")


def test_an_eviction_counts_for_some_minutes_and_only_while_a_worker_is_missing() -> None:
    old = replace(EVICTED, removed_time=NOW - 600)
    unknown = replace(EVICTED, removed_time=None)

    assert find_trouble(of(HEALTHY, EVICTED)) is not None
    assert find_trouble(of(HEALTHY, EVICTED, wanted=1)) is None
    assert find_trouble(of(HEALTHY, old)) is None
    assert find_trouble(of(HEALTHY, unknown)) is None


def test_two_pods_in_trouble_do_not_take_turns() -> None:
    pods = (NO_NODE, replace(ended(DENIED), name="pod-3"), replace(ended(DENIED), name="pod-4"))

    for order in (pods, pods[::-1]):
        found = find_trouble(of(*order, wanted=3))
        assert found is not None
        assert found.message.startswith("pod pod-3:")


@pytest.mark.parametrize(
    "found",
    [
        of(HEALTHY, pod("pod-2")),
        of(HEALTHY, replace(NO_IMAGE, deleting=True)),
        of(HEALTHY, NO_IMAGE, suspend=True),
        of(HEALTHY, NO_IMAGE, wanted=0),
        replace(of(HEALTHY, NO_IMAGE), children={}),
        replace(of(HEALTHY), children=deployment(2, conditions=[{"type": "ReplicaFailure", "status": "False"}])),
    ],
    ids=["healthy", "leaves", "suspended", "none wanted", "no Deployment", "pods are taken"],
)
def test_nothing_is_wrong(found: World) -> None:
    assert find_trouble(found) is None


def test_volumes_and_an_image_may_take_five_minutes() -> None:
    """A kubelet before 1.36 shows a pod whose image it fetches as one without network and volumes."""
    assert find_trouble(of(HEALTHY, replace(NO_VOLUME, mounting=Mounting(NOW - 299, ())))) is None


def test_a_pod_that_only_has_no_network_is_told_too() -> None:
    found = find_trouble(of(HEALTHY, replace(NO_VOLUME, mounting=Mounting(NOW - 300, ()))))

    assert found is not None
    assert "volumes" not in found.message
