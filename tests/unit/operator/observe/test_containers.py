"""A pod that does not run, in the operator's values: what stays the same from one try of the kubelet to the next."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.containers import removed, unscheduled, why_not_running, worker_container
from ots_tunnel_operator.observe.pods import worker_pod
from ots_tunnel_operator.observe.pull_causes import with_known_causes
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import Container, ContainerEnd
from tests.support.operator.worlds import NOW

NOT_FOUND = 'rpc error: code = NotFound desc = failed to pull and unpack image "w:1": not found'
PAUSE = 'Back-off pulling image "w:1"'


def item(*statuses: dict[str, Any], **status: Any) -> dict[str, Any]:
    containers = [{"name": "worker", "image": "w:1", "resources": {"limits": {"memory": "640Mi"}}}]
    return {
        "metadata": {"name": "pod-1"},
        "spec": {"containers": [*containers, {"name": "mesh", "image": "m:1"}]},
        "status": {"containerStatuses": list(statuses), **status},
    }


def waiting(reason: str, message: str = "", name: str = "worker") -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}}


def test_a_running_container() -> None:
    found = worker_container(item({"name": "worker", "state": {"running": {"startedAt": timestamp(NOW)}}}))

    assert found == Container("w:1", "640Mi", started=NOW)
    assert why_not_running(found) == ""


def test_a_pod_without_a_status() -> None:
    assert worker_container({"metadata": {"name": "pod-1"}}) == Container()


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", "CrashLoopBackOff"])
def test_what_each_start_waits_for_is_no_finding(reason: str) -> None:
    found = worker_container(item(waiting(reason, "back-off 40s restarting failed container")))

    assert (found.waiting, found.cause, why_not_running(found)) == ("", "", "")


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("ErrImagePull", NOT_FOUND),
        ("ImagePullBackOff", f"{PAUSE}: ErrImagePull: {NOT_FOUND}"),
        ("ImagePullBackOff", f"{PAUSE}: {NOT_FOUND}"),
    ],
    ids=["fails", "pauses", "pauses, in other words"],
)
def test_a_failed_pull_reads_the_same_while_the_kubelet_tries_and_pauses(reason: str, message: str) -> None:
    found = worker_container(item(waiting(reason, message)))

    assert (found.image, found.waiting, found.cause) == ("w:1", "ImagePullBackOff", NOT_FOUND)
    assert why_not_running(found) == f"ImagePullBackOff: {NOT_FOUND}"


def test_the_image_is_that_of_the_container_that_waits() -> None:
    beside = worker_container(item(waiting("ImagePullBackOff", name="mesh"), waiting("ContainerCreating")))
    first = {"initContainerStatuses": [waiting("InvalidImageName", "no name", name="setup")]}
    document = item(waiting("PodInitializing"), **first)
    document["spec"]["initContainers"] = [{"name": "setup", "image": "S:!"}]
    before = worker_container(document)

    assert (beside.image, beside.waiting) == ("m:1", "ImagePullBackOff")
    assert (before.image, before.waiting, before.cause) == ("S:!", "InvalidImageName", "no name")


def test_a_cause_that_was_told_is_kept_over_the_pause_that_names_none() -> None:
    cache = LoopCache()

    def seen(*documents: dict[str, Any]) -> list[str]:
        return [pod.message for pod in with_known_causes([worker_pod(document) for document in documents], cache)]

    unknown = "ImagePullBackOff"
    assert seen(item(waiting("ImagePullBackOff", PAUSE))) == [unknown]
    assert seen(item(waiting("ErrImagePull", NOT_FOUND))) == [f"ImagePullBackOff: {NOT_FOUND}"]
    assert seen(item(waiting("ImagePullBackOff", PAUSE))) == [f"ImagePullBackOff: {NOT_FOUND}"]
    # once no pod waits for the image, what was told of it is forgotten
    assert seen(item({"name": "worker", "state": {"running": {}}})) == [""]
    assert cache.pull_causes == {}


def test_the_last_end_is_without_the_id_of_a_request() -> None:
    message = "AuthFailed: instance 'a' does not accept it (OTSAuthFailed: wrong, request 0005-ab_c): correct it"
    ended = {"terminated": {"exitCode": 12, "reason": "Error", "message": f"{message}\n"}}
    now = worker_container(item({"name": "worker", "state": ended, "lastState": {}}))
    before = worker_container(item({"name": "worker", "state": {"running": {}}, "lastState": ended}))

    text = "AuthFailed: instance 'a' does not accept it (OTSAuthFailed: wrong): correct it"
    assert now.end == before.end == ContainerEnd(12, "Error", text)
    assert why_not_running(now) == f"Error with exit code 12: {text}"


def test_of_two_ends_the_later_one_counts() -> None:
    first, second = ({"terminated": {"exitCode": code}} for code in (5, 12))
    found = worker_container(item({"name": "worker", "state": second, "lastState": first}))

    assert found.end == ContainerEnd(12, "ended")


def test_an_end_without_a_message_is_told_by_its_code() -> None:
    assert why_not_running(Container(end=ContainerEnd(137, "OOMKilled"))) == "OOMKilled with exit code 137"
    assert why_not_running(Container(end=ContainerEnd(0, "Completed"))) == ""
    # a container that cannot be started again waits for that; what its worker said is worth more
    again = Container(waiting="CreateContainerConfigError", cause="no secret", end=ContainerEnd(137))
    assert why_not_running(again) == "CreateContainerConfigError: no secret"


def test_the_words_of_the_scheduler() -> None:
    def condition(**changes: str) -> dict[str, str]:
        return {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"} | changes

    assert unscheduled([condition(type="Ready"), condition()]) == "0/3 nodes"
    assert unscheduled([condition(message="")]) == "no reason is given"
    assert unscheduled([condition(status="True")]) == ""
    assert unscheduled([condition(reason="SchedulingGated")]) == ""
    assert worker_pod(item(conditions=[condition()])).unscheduled == "0/3 nodes"


def test_a_pod_that_its_node_has_ended() -> None:
    evicted = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    disrupted = [{"type": "DisruptionTarget", "lastTransitionTime": timestamp(NOW)}, {"type": "PodScheduled"}]

    text = "Evicted: The node was low on resource: memory."
    assert removed(evicted | {"conditions": disrupted, "startTime": timestamp(NOW - 100)}) == (text, NOW)
    assert removed(evicted | {"startTime": timestamp(NOW - 100)}) == (text, NOW - 100)
    assert removed({"phase": "Failed", "reason": "NodeShutdown"}) == ("NodeShutdown", None)
    assert removed({"phase": "Failed"}) == ("", None)
    assert removed({"phase": "Pending", "reason": "Evicted"}) == ("", None)
    assert worker_pod(item(**evicted)).message == text


def test_a_pod_names_the_template_that_it_was_made_from() -> None:
    document = item()
    document["metadata"]["labels"] = {"pod-template-hash": "7d4f"}

    assert (worker_pod(document).template, worker_pod(item()).template) == ("7d4f", "")
