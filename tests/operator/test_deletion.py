"""A deletion that something is in the way of, on a real API server: it is told by an event, and it ends in time."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ots_tunnel_operator import names
from ots_tunnel_operator.deletion.deleter import Deleter
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from tests.operator.scenes.pass_scene import FINALIZER, SETTINGS, PassScene

pytestmark = [pytest.mark.api, pytest.mark.timeout(400)]

NAME = "flights-copy"
#: Long enough that the first attempt comes in time, and not much longer.
BRIEF = replace(SETTINGS, delete_seconds=3.0, wait_seconds=0.2, call_seconds=2.0)


@pytest.fixture
async def scene(flights_scene: PassScene) -> PassScene:
    flights_scene.secret()
    flights_scene.apply(deletionPolicy="Delete", replicas=0)
    await flights_scene.running()
    return flights_scene


def events(scene: PassScene) -> dict[str, str]:
    """The messages of the deletion's events by reason."""
    found = json.loads(scene.api.must("-n", scene.namespace, "get", "events", "-o", "json"))["items"]
    return {
        item["reason"]: item["message"] for item in found if item["reason"] in {"DeletionDelayed", "TunnelLeftBehind"}
    }


async def finish(scene: PassScene, kube: Kube | None = None) -> None:
    """Delete the object and carry out its policy as a newly started operator."""
    scene.api.must("-n", scene.namespace, "patch", "ott", NAME, "--type=merge", "-p", FINALIZER)
    scene.api.must("-n", scene.namespace, "delete", "ott", NAME, "--wait=false")
    cache = LoopCache()
    try:
        await Deleter(kube or scene.kube, BRIEF, OperatorMetrics()).finish(scene.namespace, NAME, cache)
    finally:
        await cache.close()


def patch(scene: PassScene, kind: str, name: str, change: dict[str, Any]) -> None:
    scene.api.must("-n", scene.namespace, "patch", kind, name, "--type=merge", "-p", json.dumps(change))


async def wrong_key(scene: PassScene) -> None:
    patch(scene, "secret", "ots-credentials", {"stringData": {"accessKeySecret": "wrong"}})


async def deleted_secret(scene: PassScene) -> None:
    scene.api.must("-n", scene.namespace, "delete", "secret", "ots-credentials")


async def bad_endpoint(scene: PassScene) -> None:
    patch(scene, "ott", NAME, {"spec": {"source": {"endpoint": "http://127.0.0.1:9"}}})


async def stopped_service(scene: PassScene) -> None:
    patch(scene, "ott", NAME, {"spec": {"source": {"endpoint": "http://192.0.2.1:9"}}})


@pytest.mark.parametrize(
    ("obstruct", "text"),
    [
        (wrong_key, "correct accessKeyId and accessKeySecret"),
        (deleted_secret, "no such Secret"),
        (bad_endpoint, "spec.source.endpoint 'http://127.0.0.1:9'"),
        (stopped_service, "spec.source.endpoint 'http://192.0.2.1:9'"),
    ],
    ids=["credentials", "Secret", "endpoint", "no answer"],
)
async def test_an_obstacle_is_told_and_the_object_is_released_in_time(
    scene: PassScene, obstruct: Callable[[PassScene], Awaitable[None]], text: str
) -> None:
    await obstruct(scene)

    await finish(scene)

    found = events(scene)
    assert text in found["DeletionDelayed"]
    assert "at most 3 s" in found["DeletionDelayed"]
    assert "tunnel 'flights-copy' of table 'flights' is left behind" in found["TunnelLeftBehind"]
    assert len(scene.stored()["tunnels"]) == 1


@pytest.mark.parametrize("missing", ["secrets", "deployments", "pods"])
async def test_rights_that_are_missing_are_told_and_the_object_is_released_in_time(
    scene: PassScene, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = limited_access(scene, missing, tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    kube = await Kube.connect()
    monkeypatch.setenv("KUBECONFIG", str(scene.api.kubeconfig))
    try:
        await finish(scene, kube)
    finally:
        await kube.close()

    found = events(scene)
    assert "Forbidden" in found["DeletionDelayed"]
    assert missing in found["DeletionDelayed"]
    assert "is left behind" in found["TunnelLeftBehind"]


def limited_access(scene: PassScene, missing: str, folder: Path) -> Path:
    """Access of an account that lacks the rights on one kind in the namespace."""
    namespace = ("-n", scene.namespace)
    groups = {
        "": {"secrets", "pods", "configmaps", "events"},
        "apps": {"deployments"},
        "ots-tunnel.dev": {"tablestoretunnels"},
        "sparkoperator.k8s.io": {"sparkapplications"},
    }
    rules = [
        {"apiGroups": [group], "resources": sorted(kinds - {missing}), "verbs": ["*"]}
        for group, kinds in groups.items()
        if kinds - {missing}
    ]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "limited", "namespace": scene.namespace},
        "rules": rules,
    }
    scene.api.must(*namespace, "create", "serviceaccount", "limited")
    scene.api.must("create", "-f", "-", document=role)
    account = f"--serviceaccount={scene.namespace}:limited"
    scene.api.must(*namespace, "create", "rolebinding", "limited", "--role=limited", account)
    token = scene.api.must(*namespace, "create", "token", "limited").strip()
    document = yaml.safe_load(scene.api.kubeconfig.read_text())
    document["users"] = [{"name": document["users"][0]["name"], "user": {"token": token}}]
    path = folder / "limited.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.mark.parametrize("others", [[], ["example.com/theirs"]], ids=["ours alone", "another controller's"])
async def test_the_object_is_released_and_finalizers_of_others_stay(scene: PassScene, others: list[str]) -> None:
    held = json.dumps({"metadata": {"finalizers": [*others, names.FINALIZER]}})
    scene.api.must("-n", scene.namespace, "patch", "ott", NAME, "--type=merge", "-p", held)
    scene.api.must("-n", scene.namespace, "delete", "ott", NAME, "--wait=false")
    cache = LoopCache()

    await Deleter(scene.kube, BRIEF, OperatorMetrics()).finish(scene.namespace, NAME, cache)
    await cache.close()

    assert scene.stored()["tunnels"] == []
    left = json.loads(scene.api.must("-n", scene.namespace, "get", "ott", "-o", "json"))["items"]
    assert [item["metadata"]["finalizers"] for item in left] == ([others] if others else [])
    if others:
        patch(scene, "ott", NAME, {"metadata": {"finalizers": None}})


async def test_force_releases_at_once(scene: PassScene) -> None:
    await deleted_secret(scene)
    patch(scene, "ott", NAME, {"metadata": {"annotations": {names.ANNOTATION_FORCE_DELETE: "true"}}})

    await finish(scene)

    assert events(scene).keys() == {"TunnelLeftBehind"}


async def test_pods_of_a_deployment_that_is_gone_keep_the_tunnel(scene: PassScene) -> None:
    scene.api.must("-n", scene.namespace, "delete", "deployment", NAME)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "left", "namespace": scene.namespace, "labels": names.worker_selector(NAME)},
        "spec": {"containers": [{"name": "worker", "image": "worker:1"}]},
    }
    scene.api.must("create", "-f", "-", document=pod)

    await finish(scene)

    assert "worker left is draining" in events(scene)["TunnelLeftBehind"]
    assert len(scene.stored()["tunnels"]) == 1


async def test_a_record_that_is_not_ours_survives_a_deletion(scene: PassScene) -> None:
    name = names.snapshot_name(NAME)
    scene.api.must("-n", scene.namespace, "create", "configmap", name, "--from-literal=precious=1")

    await finish(scene)

    assert scene.read("configmap", name)["data"] == {"precious": "1"}
    assert scene.stored()["tunnels"] in ([], {})
