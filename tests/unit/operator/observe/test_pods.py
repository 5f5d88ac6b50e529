"""A pod as the API server describes it, in the operator's values."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.observe.pods import spark_pod, worker_pod
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import SparkPod
from tests.support.operator.worlds import NOW


def item(state: dict[str, Any], *conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    container = {"name": "worker", "restartCount": 2, **state}
    return {
        "metadata": {"name": "pod-1"},
        "status": {"phase": "Running", "containerStatuses": [container], "conditions": [*conditions], **status},
    }


READY = {"type": "Ready", "status": "True"}


def test_a_running_pod() -> None:
    pod = worker_pod(item({"state": {"running": {}}}, READY, podIP="10.0.0.1"))

    assert (pod.name, pod.phase, pod.ready, pod.ip, pod.restarts, pod.message) == (
        "pod-1",
        "Running",
        True,
        "10.0.0.1",
        2,
        "",
    )


def test_a_pod_that_is_being_deleted_is_not_ready() -> None:
    document = item({"state": {"running": {}}}, READY)
    document["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert (worker_pod(document).ready, worker_pod(document).deleting) == (False, True)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            item({"lastState": {"terminated": {"reason": "Error", "exitCode": 4, "message": "SinkRejected: no"}}}),
            "Error with exit code 4: SinkRejected: no",
        ),
        (
            item({"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}),
            "ImagePullBackOff: no such image",
        ),
        (item({"state": {"waiting": {"reason": "ContainerCreating"}}}), ""),
        (
            item({}, READY, {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}),
            "Unschedulable: full",
        ),
    ],
    ids=["ended", "waits for its image", "starts", "is not scheduled"],
)
def test_the_reason_why_it_does_not_run(document: dict[str, Any], message: str) -> None:
    assert worker_pod(document).message == message


def test_a_new_pod_has_no_status_yet() -> None:
    pod = worker_pod({"metadata": {"name": "pod-1"}})

    assert (pod.phase, pod.ready, pod.restarts, pod.message) == ("Pending", False, 0, "")


@pytest.mark.parametrize(
    ("states", "terminated"), [([], False), (["terminated"], True), (["terminated", "running"], False)]
)
def test_a_spark_pod_has_ended_with_its_last_container(states: list[str], terminated: bool) -> None:
    containers = [{"state": {state: {}}} for state in states]
    document = {"metadata": {"name": "driver"}, "status": {"phase": "Running", "containerStatuses": containers}}

    assert spark_pod(document) == SparkPod("driver", "Running", terminated)


def test_a_spark_pod_has_started_when_its_node_took_it() -> None:
    taken = {"metadata": {"name": "driver"}, "status": {"phase": "Running", "startTime": timestamp(NOW)}}

    assert spark_pod(taken).started == NOW
    assert spark_pod({"metadata": {"name": "driver"}}).started is None


def test_a_spark_pod_says_why_it_does_not_start() -> None:
    waits = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    full = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    found = [
        spark_pod({"metadata": {"name": "pod"}, "status": status}).message
        for status in ({"containerStatuses": [waits]}, {"conditions": [full]}, {})
    ]

    assert found == ["ImagePullBackOff: no such image", "Unschedulable: no room", ""]


@pytest.mark.parametrize(
    ("labels", "is_executor"), [({"spark-role": "executor"}, True), ({"spark-role": "driver"}, False), ({}, False)]
)
def test_a_spark_pod_without_the_label_of_an_executor_may_start_tasks(
    labels: dict[str, str], is_executor: bool
) -> None:
    assert spark_pod({"metadata": {"name": "pod", "labels": labels}}).is_executor is is_executor


@pytest.mark.parametrize(
    ("states", "ended"),
    [
        ([{"terminated": {"finishedAt": timestamp(NOW)}}, {"terminated": {"finishedAt": timestamp(NOW - 5)}}], NOW + 1),
        ([{"terminated": {"finishedAt": timestamp(NOW)}}, {"running": {}}], None),
        ([{"terminated": {"finishedAt": timestamp(NOW)}}, {"terminated": {"reason": "ContainerStatusUnknown"}}], None),
        ([{"terminated": {"finishedAt": None}}], None),
        ([], None),
    ],
    ids=["all have ended", "one runs", "one without a time", "no time", "no status"],
)
def test_the_end_of_a_spark_pod_is_that_of_its_last_container(
    states: list[dict[str, Any]], ended: float | None
) -> None:
    containers = [{"state": state} for state in states]
    document = {"metadata": {"name": "driver"}, "status": {"phase": "Failed", "containerStatuses": containers}}

    assert spark_pod(document).ended == ended
