"""What goes wrong in a worker's pod becomes a condition and one event at once, on a real API server; no pods run."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from ots_tunnel_operator.kube.kinds import DEPLOYMENT, POD
from ots_tunnel_operator.names import ANNOTATION_RESTARTED_AT
from tests.operator.scenes.pass_scene import PassScene
from tests.support.waiting import until

pytestmark = [pytest.mark.api, pytest.mark.lasts(10)]

LIMIT = {"spec": {"containers": [{"name": "worker", "resources": {"limits": {"memory": "640Mi"}}}]}}


@pytest.fixture
async def scene(flights_scene: PassScene) -> PassScene:
    flights_scene.secret()
    flights_scene.apply(workers={"podTemplate": LIMIT})
    await flights_scene.running()
    await flights_scene.until(lambda: bool(flights_scene.names("pods")))
    return flights_scene


@dataclass(frozen=True)
class Trouble:
    """A pod's status, in turns of the kubelet, and what is said about it."""

    reason: str
    says: tuple[str, ...]
    statuses: tuple[dict[str, Any], ...]


def waiting(reason: str, message: str) -> dict[str, Any]:
    return {"phase": "Pending", "containerStatuses": [_container({"waiting": {"reason": reason, "message": message}})]}


def ended(code: int, message: str = "", reason: str = "Error", restarts: int = 1) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    pause = {"waiting": {"reason": "CrashLoopBackOff", "message": f"back-off {10 * restarts}s restarting failed"}}
    container = _container(pause) | {"lastState": state, "restartCount": restarts}
    return {"phase": "Running", "containerStatuses": [container]}


def _container(state: dict[str, Any]) -> dict[str, Any]:
    base = {"name": "worker", "image": "worker:1", "imageID": "", "restartCount": 0, "ready": False, "lastState": {}}
    return base | {"state": state}


PULL = "rpc error: code = NotFound desc = worker:1: not found"
FULL = "0/3 nodes are available: 3 Insufficient memory."
TROUBLES = (
    Trouble(
        "ImagePullFailed",
        ("image 'worker:1' cannot be fetched", "not found"),
        (waiting("ErrImagePull", PULL), waiting("ImagePullBackOff", 'Back-off pulling image "worker:1"')),
    ),
    Trouble(
        "ImagePullFailed", ("couldn't parse image name",), (waiting("InvalidImageName", "couldn't parse image name"),)
    ),
    Trouble(
        "ContainerConfigError",
        ('CreateContainerConfigError: configmap "ca" not found',),
        (waiting("CreateContainerConfigError", 'configmap "ca" not found'),),
    ),
    Trouble(
        "Unschedulable",
        (FULL, "add nodes"),
        (
            {
                "phase": "Pending",
                "containerStatuses": [],
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": FULL}],
            },
        ),
    ),
    Trouble(
        "OOMKilled",
        ("more than the 640Mi", "to 1280Mi"),
        (ended(137, reason="OOMKilled"), ended(137, reason="OOMKilled", restarts=2)),
    ),
    Trouble(
        "WorkerMisconfigured",
        ("exit code 2 (ConfigError: sink.python.factory: no module)",),
        (ended(2, "ConfigError: sink.python.factory: no module"),),
    ),
    Trouble(
        "AuthFailed",
        ("exit code 12", "spec.source.credentials"),
        (
            ended(12, "AuthFailed: instance 'demo' (OTSAuthFailed: no, request 0001-a): correct it"),
            ended(12, "AuthFailed: instance 'demo' (OTSAuthFailed: no, request 0002-b): correct it", restarts=2),
        ),
    ),
    Trouble(
        "SinkDenied",
        ("SinkRejected: NoSuchBucket", "create the place"),
        (ended(4, "SinkRejected: NoSuchBucket: s3://a: no"),),
    ),
)


def version(scene: PassScene) -> str:
    return str(scene.read("ott", "flights-copy")["metadata"]["resourceVersion"])


async def show(scene: PassScene, status: dict[str, Any]) -> None:
    (pod,) = scene.names("pods")
    await scene.kube.patch(POD, scene.namespace, pod, {"status": {"conditions": []} | status}, "status")


def warnings(scene: PassScene) -> list[str]:
    found = json.loads(scene.api.must("-n", scene.namespace, "get", "events", "-o", "json"))["items"]
    ours = (event for event in found if event["involvedObject"]["kind"] == "TablestoreTunnel")
    return [event["reason"] for event in ours if event["type"] == "Warning"]


async def test_it_is_a_condition_and_one_event_at_once_and_causes_no_further_write(scene: PassScene) -> None:
    last = ""
    for trouble in TROUBLES:
        before = Counter(warnings(scene))
        written = set()
        for status in trouble.statuses:
            await show(scene, status)
            await scene.step()
            written.add(version(scene))
        assert len(written) == 1, f"{trouble.reason} is written again"
        for kind, expected in {"Degraded": "True", "Ready": "False", "Stalled": "False"}.items():
            found = scene.condition(kind)
            assert found[0] == expected, (trouble.reason, kind, found)
            if kind != "Stalled":
                assert found[1] == trouble.reason
                assert [text for text in trouble.says if text not in found[2]] == [], found[2]
        # one for a reason, however often its cause changes
        assert Counter(warnings(scene)) - before == Counter({trouble.reason} - {last}), trouble.reason
        last = trouble.reason
        assert scene.read("deployment", "flights-copy")["spec"]["replicas"] == 1


async def test_records_that_are_refused_stop_the_workers_until_a_user_restarts_them(scene: PassScene) -> None:
    def replicas() -> int:
        return int(scene.read("deployment", "flights-copy")["spec"]["replicas"])

    await show(scene, ended(4, "SinkRejected: OTSOutOfRowSizeLimit: the row is too large"))
    await scene.step()

    assert scene.condition("Stalled")[:2] == ("True", "SinkRejected")
    assert "kubectl ott restart flights-copy" in scene.condition("Stalled")[2]
    assert (replicas(), scene.status()["phase"]) == (0, "Failed")
    assert warnings(scene).count("SinkRejected") == 1
    # its pod goes, and with it what told of it
    await until(lambda: not scene.names("pods"), 60, "the pod goes")
    for _ in range(2):
        await scene.step()
    assert (replicas(), scene.condition("Stalled")[1]) == (0, "SinkRejected")

    annotations = {ANNOTATION_RESTARTED_AT: "2026-11-20T08:15:30Z"}
    restart = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
    await scene.kube.patch(DEPLOYMENT, scene.namespace, "flights-copy", restart)
    await scene.step()

    assert (replicas(), scene.condition("Stalled")[0]) == (1, "False")
    assert "verdict" not in scene.status()
