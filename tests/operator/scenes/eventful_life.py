"""The life of some objects in which the operator makes every kind of call to the API server that it can make."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ots_tunnel_operator import names
from tests.operator.scenes.api_faults import Call
from tests.operator.scenes.operator_scene import SECRET, OperatorScene
from tests.support.kube.kube_api import KubeApi

#: Children of an object with workers, and of one whose rows Spark copies: kind and name.
CHILDREN = (
    ("ConfigMap", "copy-config"),
    ("ServiceAccount", "copy-workers"),
    ("Deployment", "copy"),
    ("PodDisruptionBudget", "copy-workers"),
)
SPARK_CHILDREN = (
    ("ServiceAccount", "spark-spark"),
    ("ServiceAccount", "spark-spark-executors"),
    ("Role", "spark-spark"),
    ("RoleBinding", "spark-spark"),
    ("ConfigMap", "spark-snapshot-config"),
    ("SparkApplication", "spark-snapshot"),
)
FOREIGN = "example.com/foreign"
#: An address of this machine at which nothing listens.
SILENT_ADDRESS = "127.71.0.1"
WORKERS = {
    "heartbeatIntervalSeconds": 5,
    "heartbeatTimeoutSeconds": 15,
    "podTemplate": {"spec": {"nodeSelector": {"disk": "ssd"}}},
}


@dataclass
class Stranger:
    """Another client that writes to objects: an annotation, and a finalizer to those of the operator's own kind."""

    kube: KubeApi
    marks: list[tuple[str, str, str]] = field(default_factory=list)
    """Path and uid of an object, and the annotation that it got."""
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def meddle(self, path: str, call: Call) -> bool:
        """Write to the object at a path; False where there is none."""
        path = path.removesuffix("/status")
        found = self.kube.at(path)
        if found is None:
            return False
        name = f"{FOREIGN}-{next(self._numbers)}"
        change: dict[str, Any] = {"annotations": {name: str(call)}}
        if found["kind"] == "TablestoreTunnel" and not found["metadata"].get("deletionTimestamp"):
            change["finalizers"] = list({*found["metadata"].get("finalizers", ()), FOREIGN})
        self.kube.patch_at(path, {"metadata": change})
        self.marks.append((path, found["metadata"]["uid"], name))
        return True

    def overwritten(self) -> list[str]:
        """What it wrote that is gone, although the object is still there."""
        lost = []
        for path, uid, name in self.marks:
            metadata = (self.kube.at(path) or {"metadata": {}})["metadata"]
            if metadata.get("uid") == uid and name not in metadata.get("annotations", {}):
                lost.append(f"{path}: {name}")
        return lost


def live(scene: OperatorScene) -> None:
    """Create, repair, scale, look at a Secret that comes and goes, copy by Spark; everything is there at the end."""
    scene.operator.start()
    scene.create("copy", replicas=2, workers=WORKERS)
    _await_children(scene, CHILDREN)
    _scale_down(scene)
    _harm(scene, CHILDREN)
    scene.kube.delete("Secret", scene.namespace, SECRET)
    scene.until(lambda: _reason(scene, "copy", "CredentialsValid") == "SecretNotFound", "the Secret is missed")
    scene.create_secret()
    scene.until(lambda: scene.is_true("CredentialsValid"), "the Secret is found")
    scene.create(
        "spark",
        deletionPolicy="Delete",
        engine={"baseData": "Spark", "stream": "Workers"},
        source__tunnel__name="spark",
        sink__tablestore__table="spark_copy",
    )
    _await_children(scene, SPARK_CHILDREN)
    # an application that was deleted is not submitted again so soon
    _harm(scene, SPARK_CHILDREN[:-1])
    _spoil_child(scene, *SPARK_CHILDREN[-1])
    # an heir of the tunnel waits for as long as the first one is there
    scene.create("heir", replicas=1)
    scene.until(lambda: _reason(scene, "heir", "Ready") == "TunnelInUse", "the heir waits")


def end(scene: OperatorScene) -> None:
    """Delete everything; the heir takes over meanwhile."""
    _delete(scene, "copy")
    scene.until(lambda: scene.kube.get("Deployment", scene.namespace, "heir") is not None, "the heir has workers")
    for name in ("spark", "heir"):
        _delete(scene, name)


def _scale_down(scene: OperatorScene) -> None:
    """Two workers that run, of which one is taken away: its pod is marked first."""
    scene.until(lambda: len(_pods(scene)) == 2, "two pods")
    for pod in _pods(scene):
        scene.kube.patch("Pod", scene.namespace, pod["metadata"]["name"], {"status": _running()}, "status")
    # one that does no work, for all that the operator knows, goes without a mark
    scene.until(lambda: scene.status().get("readyReplicas") == 2, "the operator knows both")
    scene.kube.patch("TablestoreTunnel", scene.namespace, "copy", {"spec": {"replicas": 1}})
    scene.until(lambda: _replicas(scene) == 1, "one worker is asked for")
    scene.until(lambda: len(_pods(scene)) == 1, "one pod is left")


def _pods(scene: OperatorScene) -> list[dict[str, Any]]:
    return [pod for pod in scene.kube.list("Pod", scene.namespace) if not pod["metadata"].get("deletionTimestamp")]


def _replicas(scene: OperatorScene) -> int:
    found = scene.kube.get("Deployment", scene.namespace, "copy")
    return -1 if found is None else int(found["spec"]["replicas"])


def _running() -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    container = {"name": names.WORKER_CONTAINER, "image": "worker:test", "imageID": "", "restartCount": 0}
    return {
        "phase": "Running",
        "podIP": SILENT_ADDRESS,
        "podIPs": [{"ip": SILENT_ADDRESS}],
        "startTime": now,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now} for kind in ("PodScheduled", "Ready")
        ],
        "containerStatuses": [container | {"ready": True, "started": True, "state": {"running": {"startedAt": now}}}],
    }


def _await_children(scene: OperatorScene, children: tuple[tuple[str, str], ...]) -> None:
    for kind, name in children:
        scene.until(lambda kind=kind, name=name: scene.kube.get(kind, scene.namespace, name) is not None, name)


def _harm(scene: OperatorScene, children: tuple[tuple[str, str], ...]) -> None:
    for kind, name in children:
        _spoil_child(scene, kind, name)
        _delete_child(scene, kind, name)


def _spoil_child(scene: OperatorScene, kind: str, name: str) -> None:
    """Change a label of a child, and wait until the operator has set it back."""
    change = {"metadata": {"labels": {names.LABEL_NAME: "spoilt"}}}
    scene.kube.patch(kind, scene.namespace, name, change)

    def is_set_back() -> bool:
        found = scene.kube.get(kind, scene.namespace, name) or {"metadata": {}}
        return found["metadata"].get("labels", {}).get(names.LABEL_NAME) not in (None, "spoilt")

    scene.until(is_set_back, f"{kind} {name} is set back")


def _delete_child(scene: OperatorScene, kind: str, name: str) -> None:
    """Take a child away, and wait until the operator has made another one."""
    found = scene.kube.get(kind, scene.namespace, name)
    assert found is not None, f"{kind} {name}"
    scene.kube.delete(kind, scene.namespace, name)

    def is_new() -> bool:
        made = scene.kube.get(kind, scene.namespace, name)
        return made is not None and made["metadata"]["uid"] != found["metadata"]["uid"]

    scene.until(is_new, f"{kind} {name} is made again")


def _delete(scene: OperatorScene, name: str) -> None:
    """Delete an object, and wait until the operator has released it and it is gone."""
    kind, namespace = "TablestoreTunnel", scene.namespace
    scene.kube.delete(kind, namespace, name)

    def is_released() -> bool:
        found = scene.kube.get(kind, namespace, name)
        return found is None or names.FINALIZER not in found["metadata"].get("finalizers", ())

    scene.until(is_released, f"{name} is released")
    found = scene.kube.get(kind, namespace, name)
    if found is not None:
        assert found["metadata"]["finalizers"] == [FOREIGN]
        scene.kube.patch(kind, namespace, name, {"metadata": {"finalizers": None}})
    scene.until(lambda: scene.kube.get(kind, namespace, name) is None, f"{name} is gone")


def _reason(scene: OperatorScene, name: str, kind: str) -> str:
    return str(scene.condition(kind, name).get("reason", ""))
