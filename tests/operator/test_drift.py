"""Children that another client changed, or whose manifest lost a field, on a real API server.

Every pass starts from an empty cache, as after a restart of the operator.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.spark.cluster import ConfigMaps
from ots_tunnel_operator import names
from tests.operator.scenes.pass_scene import PassScene
from tests.operator.scenes.snapshot_driver import driver_access
from tests.support.kube.api_server import ApiServer

pytestmark = pytest.mark.api

NAME = "flights-copy"

#: A pod template with a field of every kind of list and map, and values that the API server rewrites or completes.
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"team": "shop"}, "annotations": {"note": "kept"}},
    "spec": {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "pull"}],
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["ots"]}],
        "priorityClassName": "",
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "volumes": [
            {
                "name": "token",
                "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]},
            },
            {"name": "scratch", "emptyDir": {"sizeLimit": "1024Mi"}},
        ],
        "initContainers": [{"name": "init", "image": "busybox"}],
        "containers": [
            {
                "name": "worker",
                "env": [
                    {"name": "EMPTY", "value": ""},
                    {"name": "HERE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                    {"name": "PROXY", "value": "http://proxy:3128"},
                ],
                "ports": [{"containerPort": 9000}],
                "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
                "lifecycle": {},
                "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
            }
        ],
    },
}

#: Paths in the pod template: what an edit of the overlay takes away.
REMOVED = {
    "label": ("metadata", "labels"),
    "annotation": ("metadata", "annotations"),
    "nodeSelector": ("spec", "nodeSelector"),
    "tolerations": ("spec", "tolerations"),
    "imagePullSecrets": ("spec", "imagePullSecrets"),
    "volumes": ("spec", "volumes"),
    "env": ("spec", "containers", 0, "env"),
    "ports": ("spec", "containers", 0, "ports"),
    "limits": ("spec", "containers", 0, "resources"),
}

#: JSON patches of another client on the Deployment.
FOREIGN: dict[str, list[dict[str, Any]]] = {
    "label removed": [{"op": "remove", "path": "/metadata/labels/ots-tunnel.dev~1role"}],
    "label changed": [{"op": "replace", "path": "/metadata/labels/ots-tunnel.dev~1name", "value": "other"}],
    "hash removed": [{"op": "remove", "path": "/metadata/annotations/ots-tunnel.dev~1rendered-hash"}],
    "owner removed": [{"op": "remove", "path": "/metadata/ownerReferences"}],
    "pod label removed": [{"op": "remove", "path": "/spec/template/metadata/labels/team"}],
    "pod annotation changed": [{"op": "replace", "path": "/spec/template/metadata/annotations/note", "value": "x"}],
    "nodeSelector removed": [{"op": "remove", "path": "/spec/template/spec/nodeSelector"}],
    "nodeSelector extended": [{"op": "add", "path": "/spec/template/spec/nodeSelector/more", "value": "x"}],
    "toleration added": [{"op": "add", "path": "/spec/template/spec/tolerations/-", "value": {"operator": "Exists"}}],
    "tolerations removed": [{"op": "remove", "path": "/spec/template/spec/tolerations"}],
    "env removed": [{"op": "remove", "path": "/spec/template/spec/containers/0/env/2"}],
    "env changed": [{"op": "replace", "path": "/spec/template/spec/containers/0/env/2/value", "value": "x"}],
    "limit removed": [{"op": "remove", "path": "/spec/template/spec/containers/0/resources/limits/memory"}],
    "args changed": [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--more"}],
    "mount removed": [{"op": "remove", "path": "/spec/template/spec/containers/0/volumeMounts/0"}],
    "probe removed": [{"op": "remove", "path": "/spec/template/spec/containers/0/livenessProbe"}],
    "init container removed": [{"op": "remove", "path": "/spec/template/spec/initContainers"}],
    "strategy": [{"op": "replace", "path": "/spec/strategy", "value": {"type": "Recreate"}}],
    "replicas": [{"op": "replace", "path": "/spec/replicas", "value": 9}],
}


@pytest.fixture
def scene(flights_scene: PassScene) -> PassScene:
    flights_scene.secret()
    return flights_scene


async def restarted_pass(scene: PassScene) -> None:
    """Run a pass without anything that earlier ones kept."""
    await scene.close()
    scene.caches.clear()
    await scene.step()


def desired(scene: PassScene) -> dict[str, Any]:
    """What the operator decides of the Deployment: everything but the API server's own metadata."""
    found = scene.read("deployment", NAME)
    kept = ("labels", "ownerReferences", "annotations")
    metadata = {key: value for key, value in found["metadata"].items() if key in kept}
    # the Deployment controller numbers its revisions
    metadata["annotations"] = {
        key: value for key, value in metadata["annotations"].items() if key == names.ANNOTATION_RENDERED_HASH
    }
    return {"metadata": metadata, "spec": found["spec"]}


def watched(scene: PassScene) -> list[str]:
    """The kinds that the operator applies from now on."""
    applied: list[str] = []
    original = scene.kube.apply

    async def apply(manifest: dict[str, Any]) -> dict[str, Any]:
        applied.append(manifest["kind"])
        return await original(manifest)

    scene.kube.apply = apply
    return applied


async def test_a_restarted_operator_writes_nothing_to_what_it_applied(scene: PassScene) -> None:
    scene.apply(workers={"podTemplate": TEMPLATE})
    await scene.running()
    applied = watched(scene)

    for _ in range(2):
        await restarted_pass(scene)

    assert applied == []


async def test_what_leaves_the_pod_template_leaves_the_deployment(scene: PassScene) -> None:
    scene.apply()
    await scene.running()
    plain = desired(scene)

    scene.apply(workers={"podTemplate": TEMPLATE})
    await restarted_pass(scene)
    full = desired(scene)
    assert full["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}
    for path in REMOVED.values():
        template = copy.deepcopy(TEMPLATE)
        place: Any = template
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]
        if path[-1] == "volumes":
            del template["spec"]["containers"][0]["volumeMounts"]
        scene.apply(workers={"podTemplate": template})
        await restarted_pass(scene)
        found = _at(desired(scene)["spec"]["template"], path)
        assert found == _at(plain["spec"]["template"], path), path

    scene.apply()
    await restarted_pass(scene)
    # the hash is also one of the generation, which tells an edit from a new release
    found = desired(scene)
    found["metadata"]["annotations"] = plain["metadata"]["annotations"]
    assert found == plain


def _at(place: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        place = place[step] if isinstance(step, int) else (place or {}).get(step)
    return place


@pytest.mark.lasts(13)
async def test_what_another_client_changes_in_our_fields_is_set_back(scene: PassScene) -> None:
    scene.apply(workers={"podTemplate": TEMPLATE})
    await scene.running()
    before = desired(scene)

    for what, change in FOREIGN.items():
        scene.api.must("-n", scene.namespace, "patch", "deployment", NAME, "--type=json", "-p", json.dumps(change))
        assert desired(scene) != before, what
        await restarted_pass(scene)
        assert desired(scene) == before, what


async def test_a_changed_document_of_the_workers_is_set_back(scene: PassScene) -> None:
    scene.apply()
    await scene.running()
    name = names.config_name(NAME)
    before = scene.read("configmap", name)["data"]

    for change in ('{"data":{"worker.yaml":"x"}}', '{"data":null}', '{"data":{"worker.yaml":null}}'):
        scene.api.must("-n", scene.namespace, "patch", "configmap", name, "--type=merge", "-p", change)
        await restarted_pass(scene)
        assert scene.read("configmap", name)["data"] == before


async def test_what_another_client_adds_beside_our_fields_stays(scene: PassScene) -> None:
    scene.apply()
    await scene.running()
    scene.api.must("-n", scene.namespace, "annotate", "deployment", NAME, "note=theirs")
    scene.api.must("-n", scene.namespace, "rollout", "restart", f"deployment/{NAME}")
    generation = scene.read("deployment", NAME)["metadata"]["generation"]

    await restarted_pass(scene)

    found = scene.read("deployment", NAME)
    assert found["metadata"]["generation"] == generation
    assert found["metadata"]["annotations"]["note"] == "theirs"
    assert "kubectl.kubernetes.io/restartedAt" in found["spec"]["template"]["metadata"]["annotations"]


#: JSON patches of another client on what workers need besides their Deployment.
WORKER_FOREIGN: list[tuple[str, list[dict[str, Any]]]] = [
    ("serviceaccount", [{"op": "replace", "path": "/automountServiceAccountToken", "value": True}]),
    ("serviceaccount", [{"op": "remove", "path": "/metadata/labels"}]),
    ("poddisruptionbudget", [{"op": "replace", "path": "/spec/maxUnavailable", "value": 0}]),
    ("poddisruptionbudget", [{"op": "remove", "path": "/spec/unhealthyPodEvictionPolicy"}]),
]


async def test_account_and_budget_of_the_workers_are_set_back(scene: PassScene) -> None:
    def settled(kind: str) -> dict[str, Any]:
        found = child_of(scene, kind, "-workers")
        return {key: value for key, value in found.items() if key != "status"}

    scene.apply()
    await scene.running()
    await restarted_pass(scene)

    for kind, change in WORKER_FOREIGN:
        before = settled(kind)
        scene.api.must("-n", scene.namespace, "patch", kind, f"{NAME}-workers", "--type=json", "-p", json.dumps(change))
        assert settled(kind) != before, change
        await restarted_pass(scene)
        assert settled(kind) == before, change


#: JSON patches of another client on the children of a snapshot.
SPARK_FOREIGN: list[tuple[str, str, list[dict[str, Any]]]] = [
    ("sparkapplication", "-snapshot", [{"op": "remove", "path": "/spec/sparkConf/spark.speculation"}]),
    ("sparkapplication", "-snapshot", [{"op": "remove", "path": "/spec/driver/template/spec/volumes/0"}]),
    ("sparkapplication", "-snapshot", [{"op": "replace", "path": "/spec/executor/instances", "value": 9}]),
    ("role", "-spark", [{"op": "remove", "path": "/rules/0/verbs/0"}]),
    ("rolebinding", "-spark", [{"op": "remove", "path": "/subjects"}]),
    ("serviceaccount", "-spark", [{"op": "remove", "path": "/metadata/labels"}]),
    ("serviceaccount", "-spark-executors", [{"op": "replace", "path": "/automountServiceAccountToken", "value": True}]),
    ("sparkapplication", "-snapshot", [{"op": "remove", "path": "/spec/executor/serviceAccount"}]),
    ("configmap", "-snapshot-config", [{"op": "remove", "path": "/data"}]),
    ("configmap", "-snapshot", [{"op": "remove", "path": "/metadata/labels/app.kubernetes.io~1component"}]),
]


async def test_the_children_of_a_snapshot_are_set_back_and_otherwise_left_alone(
    spark_api_server: ApiServer, scene: PassScene, tmp_path: Path
) -> None:
    scene.apply(engine__baseData="Spark", spark={"conf": {"spark.a": "1"}})
    await scene.until(lambda: f"{NAME}-snapshot" in scene.names("sparkapplications"))
    # the driver replaces the record as a whole
    maps = ConfigMaps(driver_access(spark_api_server.kubeconfig, tmp_path), scene.namespace)
    record = maps.get(f"{NAME}-snapshot")
    assert record is not None
    maps.replace(record | {"data": {"label": record["metadata"]["labels"]["ots-tunnel.dev/tunnel-id"]}})
    applied = watched(scene)
    await restarted_pass(scene)
    assert applied == []

    for kind, suffix, change in SPARK_FOREIGN:
        before = child_of(scene, kind, suffix)
        scene.api.must("-n", scene.namespace, "patch", kind, NAME + suffix, "--type=json", "-p", json.dumps(change))
        assert child_of(scene, kind, suffix) != before, change
        await restarted_pass(scene)
        assert child_of(scene, kind, suffix) == before, change

    scene.apply(engine__baseData="Spark", spark={"conf": {"spark.b": "1"}})
    await restarted_pass(scene)
    assert "spark.a" not in scene.read("sparkapplication", f"{NAME}-snapshot")["spec"]["sparkConf"]


def child_of(scene: PassScene, kind: str, suffix: str) -> dict[str, Any]:
    found = scene.read(kind, NAME + suffix)
    moving = ("resourceVersion", "generation", "managedFields")
    return found | {"metadata": {key: value for key, value in found["metadata"].items() if key not in moving}}
