"""Every sink of the object, from the object on a real API server to what a real worker has stored.

The operator is a process of its own. The worker runs with the document and the volumes of the pod that Kubernetes made
from the operator's Deployment (`scenes.loopback_node`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.operator.scenes.hook import running_hook
from tests.operator.scenes.loopback_node import LoopbackNode
from tests.operator.scenes.operator_scene import OperatorScene, running_scene
from tests.support.kube.api_server import ApiServer
from tests.support.sinks.s3_store import BUCKET, S3Store, s3_store

pytestmark = [
    pytest.mark.api,
    pytest.mark.timeout(300),
    pytest.mark.unmeasured,
    pytest.mark.lasts(30),
]

ROWS = {f"{number:06}" for number in range(40)}
NEW = ["new-1", "new-2"]


@contextmanager
def running(scene: OperatorScene, folder: Path) -> Iterator[None]:
    """Run the worker of the object, and add rows once it is Ready."""
    with LoopbackNode(scene, folder) as node:
        scene.until(lambda: bool(scene.kube.list("Pod", scene.namespace)), "the Deployment has its pod")
        node.run()
        scene.until(lambda: scene.is_true("Ready"), "existing rows are copied", seconds=120)
        scene.put("flights", NEW, 1)
        yield


def stored_key(record: dict[str, Any]) -> str:
    """The key of a row in a record as JSON."""
    return str(record["key"]["id"])


def missing_secret(scene: OperatorScene, path: str, name: str, *keys: str) -> None:
    """Wait until the conditions say that a Secret is missing, and assert that nothing was created."""
    scene.until(lambda: scene.condition("SinkReady").get("reason") == "SecretNotFound", "the missing Secret")
    for kind in ("SinkReady", "CredentialsValid", "Ready"):
        found = scene.condition(kind)
        assert (found["status"], found["reason"]) == ("False", "SecretNotFound")
        assert f"{path}.name '{name}': no such Secret" in found["message"]
        assert all(key in found["message"] for key in keys)
    assert scene.service.call("state")["instances"][0]["tunnels"] == []
    assert scene.kube.list("Deployment", scene.namespace) == []


def test_files_in_a_bucket(api_server: ApiServer, tmp_path: Path) -> None:
    with running_scene(api_server.kubeconfig, "files-sink", tmp_path) as scene, s3_store() as store:
        files = {
            "url": f"s3://{BUCKET}/orders",
            "endpoint": store.url,
            "credentials": {"secretRef": {"name": "store-keys"}},
            "compression": "gzip",
            "maxFileSeconds": 1,
        }
        scene.create(**sink(files=files))
        scene.operator.start()
        missing_secret(scene, "spec.sink.files.credentials.secretRef", "store-keys", "accessKeyId", "accessKeySecret")
        # created afterwards: the watch of the Secret wakes the object
        scene.create_secret("store-keys", key_id="store-id", secret="store-secret")
        with running(scene, tmp_path):
            scene.until(lambda: keys_of(store.records()) == ROWS | set(NEW), "every record is in the bucket")
            scene.until(lambda: scene.is_true("CredentialsValid"), "the worker's report counts for the credentials")
            assert scene.is_true("SinkReady")
        assert set(store.key_ids) == {"store-id", "id"}  # the second one is that of the test
        assert "store-secret" not in scene.operator.last_output(1 << 30)


def keys_of(files: dict[str, list[dict[str, Any]]]) -> set[str]:
    return {stored_key(record) for records in files.values() for record in records}


def test_files_on_a_volume(api_server: ApiServer, tmp_path: Path) -> None:
    with running_scene(api_server.kubeconfig, "files-volume", tmp_path) as scene:
        files = {"url": "file:///data/orders", "maxFileSeconds": 1}
        scene.create(**sink(files=files))
        scene.operator.start()
        scene.until(lambda: scene.condition("Stalled").get("reason") == "InvalidSpec", "the missing volume")
        message = scene.condition("SinkReady")["message"]
        assert "spec.sink.files.url 'file:///data/orders': no volume is mounted at /data/orders or above it" in message
        assert scene.service.call("state")["instances"][0]["tunnels"] == []
        template = {
            "spec": {
                "containers": [{"name": "worker", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "orders"}}],
            }
        }
        workers = {"heartbeatIntervalSeconds": 5, "heartbeatTimeoutSeconds": 15, "podTemplate": template}
        scene.kube.patch("TablestoreTunnel", scene.namespace, "copy", {"spec": {"workers": workers}})
        with running(scene, tmp_path):
            folder = tmp_path / "volumes" / "data" / "orders"
            scene.until(lambda: keys_below(folder) == ROWS | set(NEW), "every record is on the volume")


def keys_below(folder: Path) -> set[str]:
    files = [path for path in folder.rglob("*.jsonl") if not path.name.startswith(".")]
    return {stored_key(json.loads(line)) for path in files for line in path.read_text().splitlines()}


def test_a_web_service_with_selection_and_dead_letters(api_server: ApiServer, tmp_path: Path) -> None:
    with (
        running_scene(api_server.kubeconfig, "http-sink", tmp_path) as scene,
        s3_store() as store,
        running_hook(b"signing-secret", "000007") as hook,
    ):
        place = {"url": f"s3://{BUCKET}/dead", "endpoint": store.url, "credentials": {"secretRef": {"name": "dead"}}}
        delivery = {
            "columns": {"rename": {"number": "count"}},
            "filter": {"keyRange": {"begin": [{"string": "000005"}]}},
            "onPermanentError": "DeadLetter",
            "deadLetter": {"files": place},
        }
        http = {"url": hook.url, "hmacSecretRef": {"name": "hook", "key": "signing"}}
        scene.create(**sink(http=http), delivery=delivery, source__rateLimit={"rowsPerSecondPerWorker": 10_000})
        scene.operator.start()
        missing_secret(scene, "spec.sink.http.hmacSecretRef", "hook", "signing")
        create_secret(scene, "hook", other="x")
        scene.until(lambda: scene.condition("SinkReady").get("reason") == "KeyMissing", "the missing key")
        assert "has no usable signing, its keys are ['other']: add" in scene.condition("SinkReady")["message"]
        signing = {"stringData": {"signing": "signing-secret"}}
        scene.kube.patch("Secret", scene.namespace, "hook", signing)
        path = "spec.delivery.deadLetter.files.credentials.secretRef.name 'dead': no such Secret"
        scene.until(lambda: path in scene.condition("CredentialsValid").get("message", ""), "the place's Secret")
        scene.create_secret("dead", key_id="store-id", secret="store-secret")
        with running(scene, tmp_path):
            expected = {key for key in ROWS if key >= "000005"} - {"000007"} | set(NEW)
            scene.until(lambda: {stored_key(record) for record in hook.records} == expected, "every record is taken")
            scene.until(lambda: dead_letters(store) == {"000007"}, "the refused record is stored")
            refused(scene)
        assert {column["name"] for record in hook.records for column in record["columns"]} == {"count"}
        assert "signing-secret" not in scene.operator.last_output(1 << 30)


def refused(scene: OperatorScene) -> None:
    """The object says that a record was left out, and nothing else is wrong, until a person accepts it."""
    scene.until(lambda: scene.condition("Degraded").get("reason") == "RecordsRefused", "it says what was left out")
    found = scene.status()["refused"]
    assert (found["records"], found["keys"]) == (1, 1)
    scene.until(lambda: scene.is_true("Ready"), "records flow as the policy says")
    accepted = {"metadata": {"annotations": {"ots-tunnel.dev/accept-refused": "1"}}}
    scene.kube.patch("TablestoreTunnel", scene.namespace, "copy", accepted)
    scene.until(lambda: scene.condition("Degraded").get("status") == "False", "it is accepted")
    assert scene.status()["refused"]["records"] == 1


def create_secret(scene: OperatorScene, name: str, **values: str) -> None:
    metadata = {"name": name, "namespace": scene.namespace}
    scene.kube.create({"kind": "Secret", "metadata": metadata, "stringData": values})


def dead_letters(store: S3Store) -> set[str]:
    return {stored_key(json.loads(line)) for text in store.texts("dead/") for line in text.splitlines()}


PROCESSOR = """
import json, pathlib
from ots_tunnel import SimpleProcessorFactory

def process(context, records):
    with pathlib.Path(PLACE).open("a") as file:
        for record in records:
            file.write(json.dumps(dict(record.primary_key)) + "\\n")

def make():
    return SimpleProcessorFactory(process)
"""


def test_code_of_the_user(api_server: ApiServer, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.touch()
    (tmp_path / "shop_orders.py").write_text(PROCESSOR.replace("PLACE", repr(str(seen))))
    with running_scene(api_server.kubeconfig, "python-sink", tmp_path) as scene:
        scene.create(**sink(python={"factory": "shop_orders:make"}))
        scene.operator.start()
        with running(scene, tmp_path):
            keys = ROWS | set(NEW)
            scene.until(lambda: {json.loads(line)["id"] for line in whole_lines(seen)} == keys, "every record is seen")


def whole_lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def sink(**member: Any) -> dict[str, Any]:
    """Changes that give the object this sink, and a quick worker."""
    return {"sink": member, "workers": {"heartbeatIntervalSeconds": 5, "heartbeatTimeoutSeconds": 15}}
