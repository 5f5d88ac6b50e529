"""The workers' PodMonitor on a real API server: with the kind, without it, and without the right to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.kinds import Kind, Manifest
from ots_tunnel_operator.manifests.pod_monitor import pod_monitor
from tests.operator.scenes.pass_scene import PassScene
from tests.support.kube.api_server import ApiServer
from tests.support.kube.monitoring_kinds import GROUP, definition

pytestmark = [pytest.mark.api, pytest.mark.xdist_group("pod_monitor")]

NAME = "flights-copy-workers"
KIND = f"podmonitors.{GROUP}"
ASKED: dict[str, Any] = {"monitoring": {"podMonitor": True}}


@pytest.fixture
def kindless(api_server: ApiServer) -> Iterator[ApiServer]:
    """The API server does not serve PodMonitors, before and after."""
    yield api_server
    api_server.must("delete", "crd", KIND, "--ignore-not-found", "--timeout=60s")


@pytest.fixture
def kind(kindless: ApiServer) -> None:
    """The API server serves PodMonitors."""
    install(kindless)


@pytest.fixture
async def scene(flights_scene: PassScene) -> PassScene:
    flights_scene.secret()
    return flights_scene


def install(server: ApiServer) -> None:
    server.must("apply", "-f", "-", document=definition("PodMonitor"))
    server.must("wait", "--for=condition=Established", f"crd/{KIND}", "--timeout=30s")


def is_there(scene: PassScene) -> bool:
    return scene.api.kubectl("-n", scene.namespace, "get", KIND, NAME).returncode == 0


async def test_it_is_made_set_back_and_removed(scene: PassScene, kind: None) -> None:
    scene.apply(**ASKED)
    await scene.running()
    await scene.until(lambda: is_there(scene))
    found, obj = scene.read(KIND, NAME), scene.read("ott", "flights-copy")

    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("TablestoreTunnel", obj["metadata"]["uid"], True)
    assert found["spec"] == pod_monitor_spec(scene)
    assert scene.status()["podMonitor"] == NAME

    # as rendered it is left alone, with what others have added
    patch = '{"metadata":{"labels":{"release":"prometheus"}}}'
    scene.api.must("-n", scene.namespace, "patch", KIND, NAME, "--type=merge", "-p", patch)
    before = scene.read(KIND, NAME)["metadata"]["resourceVersion"]
    for _ in range(3):
        await scene.step()
    assert scene.read(KIND, NAME)["metadata"]["resourceVersion"] == before
    patch = '[{"op":"replace","path":"/spec/podMetricsEndpoints/0/port","value":"other"}]'
    scene.api.must("-n", scene.namespace, "patch", KIND, NAME, "--type=json", "-p", patch)
    await scene.until(lambda: scene.read(KIND, NAME)["spec"] == pod_monitor_spec(scene))
    assert scene.read(KIND, NAME)["metadata"]["labels"]["release"] == "prometheus"

    scene.apply()
    await scene.until(lambda: not is_there(scene))
    await scene.until(lambda: "podMonitor" not in scene.status())


def pod_monitor_spec(scene: PassScene) -> object:
    return pod_monitor(TablestoreTunnel.from_body(scene.read("ott", "flights-copy")))["spec"]


async def test_a_cluster_without_the_kind_is_told_and_the_workers_run(scene: PassScene, kindless: ApiServer) -> None:
    scene.apply(**ASKED)
    await scene.running()

    status, reason, message = scene.condition("Degraded")
    assert (status, reason) == ("True", "PodMonitorFailed")
    assert "the cluster has no kind PodMonitor (monitoring.coreos.com/v1)" in message
    assert scene.condition("Ready")[1] != "PodMonitorFailed"
    assert scene.condition("Stalled")[0] == "False"
    # once the kind is there, nothing else is needed
    install(kindless)
    await scene.until(lambda: is_there(scene))
    await scene.step()
    assert scene.condition("Degraded")[1] != "PodMonitorFailed"


async def test_an_object_that_does_not_ask_costs_no_call(
    scene: PassScene, kind: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    get = Kube.get

    async def counting(self: Kube, of: Kind, namespace: str, name: str) -> Manifest | None:
        looked.append(of.plural)
        return await get(self, of, namespace, name)

    monkeypatch.setattr(Kube, "get", counting)
    scene.apply()
    await scene.running()

    assert "deployments" in looked
    assert "podmonitors" not in looked
