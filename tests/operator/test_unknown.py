"""What cannot be observed is shown as Unknown within a minute, and as it is once it can be observed again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.operator.scenes.operator_scene import OperatorScene, running_scene
from tests.support.kube.api_server import ApiServer

pytestmark = [pytest.mark.api, pytest.mark.timeout(600)]

#: Seconds within which the status says that nothing was observed: a minute, and what a busy machine needs more.
UNKNOWN_SECONDS = 90.0


def _reason(scene: OperatorScene) -> tuple[str, str]:
    ready = scene.condition("Ready")
    return ready.get("status", ""), ready.get("reason", "")


@pytest.mark.parametrize(("part", "status"), [("/secrets", 403), ("/deployments", 500)])
@pytest.mark.lasts(55)
def test_what_the_api_server_refuses_is_unknown_within_a_minute(
    api_server: ApiServer, tmp_path: Path, part: str, status: int
) -> None:
    namespace = f"unknown-{status}"
    with running_scene(api_server.kubeconfig, namespace, tmp_path, flags=()) as scene:
        scene.create(replicas=0)
        scene.operator.start()
        scene.until(lambda: _reason(scene) == ("False", "NoWorkersWanted"), "nothing is consumed")
        before = scene.status()

        scene.proxy.refused[part] = status
        began = time.monotonic()
        scene.until(lambda: _reason(scene) == ("Unknown", "ApiServerRefused"), "Ready is Unknown", UNKNOWN_SECONDS)
        shown = time.monotonic() - began
        after = scene.status()
        # posted when the status is written
        scene.until(lambda: ("Warning", "ApiServerRefused") in _events(scene, namespace), "an event says so", 60)
        scene.proxy.refused.clear()
        scene.until(lambda: _reason(scene) == ("False", "NoWorkersWanted"), "it is observed again", 120)

    assert shown <= UNKNOWN_SECONDS
    assert part in scene_message(after)
    assert {entry["status"] for entry in after["conditions"]} == {"Unknown"}
    assert after["channels"] == before["channels"]
    assert after["observedTime"] >= before["observedTime"]


@pytest.mark.lasts(54)
def test_a_definition_that_is_not_served_for_a_while_ends_nothing(api_server: ApiServer, tmp_path: Path) -> None:
    with running_scene(api_server.kubeconfig, "unserved", tmp_path, flags=()) as scene:
        scene.create(replicas=0)
        scene.operator.start()
        scene.until(lambda: _reason(scene) == ("False", "NoWorkersWanted"), "nothing is consumed")

        scene.proxy.refused["/tablestoretunnels"] = 404
        asked = len(scene.proxy.requests)
        scene.until(lambda: '"pass_failed"' in scene.operator.last_output(), "a pass has failed", UNKNOWN_SECONDS)
        assert any("/tablestoretunnels" in request for request in scene.proxy.requests[asked:])
        scene.proxy.refused.clear()
        patch = {"spec": {"replicas": 1}}
        scene.kube.patch("TablestoreTunnel", "unserved", "copy", patch)
        scene.until(lambda: scene.condition("Ready").get("reason") == "StartingWorkers", "the loop goes on", 120)


def test_a_claim_of_an_operator_that_cannot_be_asked_is_respected_and_told(
    api_server: ApiServer, tmp_path: Path
) -> None:
    namespace = "claimed"
    with running_scene(api_server.kubeconfig, namespace, tmp_path) as scene:
        claimed = scene.tunnel_object(replicas=0)
        claimed["metadata"]["annotations"] = {"ots-tunnel.dev/operator": "far-away/lease"}
        scene.proxy.refused["/namespaces/far-away/leases"] = 403
        scene.kube.create(claimed)
        scene.operator.start()

        def told() -> list[str]:
            events = scene.kube.list("Event", namespace)
            return [event["message"] for event in events if event["reason"] == "ClaimUnreadable"]

        scene.until(lambda: bool(told()), "an event says why nothing happens")
        assert "'far-away/lease'" in told()[0]
        assert scene.status() == {}
        assert scene.kube.get("Deployment", namespace, "copy") is None

        scene.kube.patch(
            "TablestoreTunnel", namespace, "copy", {"metadata": {"annotations": {"ots-tunnel.dev/operator": None}}}
        )
        scene.until(lambda: _reason(scene) == ("False", "NoWorkersWanted"), "it is served")


def _events(scene: OperatorScene, namespace: str) -> set[tuple[str, str]]:
    return {(event["type"], event["reason"]) for event in scene.kube.list("Event", namespace)}


def scene_message(status: dict[str, list[dict[str, str]]]) -> str:
    """The message of Ready."""
    return next(entry["message"] for entry in status["conditions"] if entry["type"] == "Ready")
