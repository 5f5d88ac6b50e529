"""Bad input is refused at apply or reported in a condition and an event. The operator creates nothing for it, and
other objects keep working.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.model import KeyColumn, KeyType
from ots_tunnel.tables import TableSchema
from tests.operator.scenes.end_state import Document, difference, end_state
from tests.operator.scenes.operator_scene import OperatorScene, running_scene
from tests.support.kube.api_server import ApiServer
from tests.support.kube.kube_api import Refused

pytestmark = [
    pytest.mark.api,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("bad-input"),  # they share one operator
    pytest.mark.lasts(4),
]


@dataclass(frozen=True)
class Bad:
    """One mistake, the condition and reason that report it, and the words of the message: field, value, what to do."""

    changes: dict[str, Any]
    condition: str
    reason: str
    says: tuple[str, ...]


UNREACHABLE = "http://unreachable"
OTHER_SERVER = "http://other-server"


def _secret(name: str) -> dict[str, Any]:
    return {"source__credentials": {"secretRef": {"name": name}}}


CASES: dict[str, Bad] = {
    "missing-secret": Bad(
        _secret("nowhere"),
        "CredentialsValid",
        "SecretNotFound",
        ("spec.source.credentials.secretRef.name 'nowhere'", "create it"),
    ),
    "half-a-secret": Bad(
        _secret("half"),
        "CredentialsValid",
        "KeyMissing",
        ("spec.source.credentials.secretRef.name 'half'", "accessKeySecret", "add what is missing"),
    ),
    "wrong-key": Bad(
        _secret("wrong-key"),
        "CredentialsValid",
        "AuthFailed",
        ("spec.source.credentials.secretRef.name 'wrong-key'", "correct accessKeyId and accessKeySecret"),
    ),
    "unknown-key-id": Bad(
        _secret("unknown-id"),
        "CredentialsValid",
        "AuthFailed",
        ("spec.source.credentials.secretRef.name 'unknown-id'", "correct accessKeyId and accessKeySecret"),
    ),
    "missing-table": Bad(
        {"source__table": "nowhere"},
        "TunnelReady",
        "TableNotFound",
        ("spec.source.table 'nowhere'", "create the table"),
    ),
    "missing-instance": Bad(
        {"source__instance": "elsewhere"},
        "TunnelReady",
        "AuthFailed",
        ("spec.source.instance 'elsewhere'", "correct"),
    ),
    "silent-source": Bad(
        {"source__endpoint": UNREACHABLE},
        "TunnelReady",
        "EndpointUnreachable",
        ("spec.source.endpoint 'http://127.0.0.1:", "correct the endpoint"),
    ),
    "silent-sink": Bad(
        {"sink__tablestore__endpoint": UNREACHABLE},
        "SinkReady",
        "EndpointUnreachable",
        ("spec.sink.tablestore.endpoint 'http://127.0.0.1:", "correct the endpoint"),
    ),
    "not-tablestore": Bad(
        {"source__endpoint": OTHER_SERVER},
        "TunnelReady",
        "EndpointUnreachable",
        ("spec.source.endpoint 'http://127.0.0.1:", "correct the endpoint"),
    ),
    "other-keys": Bad(
        {"sink__tablestore__table": "other_keys"},
        "SinkReady",
        "DestinationIncompatible",
        ("spec.sink.tablestore.table 'other_keys'", "id", "change the table's options"),
    ),
    "missing-destination": Bad(
        {"sink__tablestore__table": "nowhere", "sink__tablestore__createTable": "Never"},
        "SinkReady",
        "DestinationNotFound",
        ("spec.sink.tablestore.table 'nowhere'", "create it"),
    ),
    "second-on-a-tunnel": Bad(
        {"source__tunnel__name": "flights-copy"},
        "TunnelReady",
        "TunnelInUse",
        ("spec.source.tunnel.name 'flights-copy'", "/good", "another tunnel name"),
    ),
    "no-tunnel-to-use": Bad(
        {"source__tunnel__managementPolicy": "UseExisting"},
        "TunnelReady",
        "TunnelNotFound",
        ("spec.source.tunnel.name 'no-tunnel-to-use'", "create the tunnel"),
    ),
}


@pytest.fixture(scope="module")
def scene(api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorScene]:
    """Start an operator with a healthy object `good`."""
    folder: Path = tmp_path_factory.mktemp("bad")
    with running_scene(api_server.kubeconfig, "bad-input", folder) as scene:
        scene.create_secret("wrong-key", secret="another")
        scene.create_secret("unknown-id", key_id="nobody")
        half = {"name": "half", "namespace": scene.namespace}
        scene.kube.create({"kind": "Secret", "metadata": half, "stringData": {"accessKeyId": "test-id"}})
        scene.admin.create(TableSchema("other_keys", (KeyColumn("id", KeyType.INTEGER),)))
        scene.create("good")
        scene.operator.start()
        scene.until(lambda: scene.status("good").get("replicas") == 1, "the healthy object has its worker")
        scene.until_quiet(2)
        yield scene
        assert scene.operator.is_running
        log = scene.operator.last_output(1 << 30)
        assert "test-secret" not in log
        assert "another" not in log


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    """Reserve an address on which no process listens or can start to listen."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}"


def _changes(scene: OperatorScene, name: str, bad: Bad, silent: str) -> dict[str, Any]:
    places = {UNREACHABLE: silent, OTHER_SERVER: scene.service.admin_url}
    own = {"source__tunnel__name": name, "sink__tablestore__table": f"copy_of_{name.replace('-', '_')}"}
    given = {path: places.get(value, value) if isinstance(value, str) else value for path, value in bad.changes.items()}
    return own | given


def _without(state: Document, name: str) -> Document:
    objects = {key: value for key, value in state["objects"].items() if key != f"TablestoreTunnel/{name}"}
    return {**state, "objects": objects}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_reported_and_nothing_is_created(scene: OperatorScene, silent: str, name: str) -> None:
    bad = CASES[name]
    before = end_state(scene)
    scene.create(name, **_changes(scene, name, bad, silent))
    try:
        scene.until(lambda: scene.condition(bad.condition, name).get("status") == "False", "the condition")
        condition, ready = scene.condition(bad.condition, name), scene.condition("Ready", name)
        scene.until(lambda: bool(_events(scene, name)), "the event")
        # the operator tries again and still creates nothing
        scene.until_quiet(1.2)
        (event,) = _events(scene, name)
        found = _without(end_state(scene), name)
    finally:
        scene.kube.delete("TablestoreTunnel", scene.namespace, name)
    scene.until(lambda: scene.kube.get("TablestoreTunnel", scene.namespace, name) is None, "the object goes")

    assert (condition["reason"], ready["status"], ready["reason"]) == (bad.reason, "False", bad.reason)
    assert not [text for text in bad.says if text not in condition["message"]], condition["message"]
    assert (event["type"], event["reason"], event["message"]) == ("Warning", bad.reason, condition["message"])
    assert difference(before, found) == ""


def _events(scene: OperatorScene, name: str) -> list[Document]:
    events = scene.kube.list("Event", scene.namespace)
    return [event for event in events if event["involvedObject"]["name"] == name and event["type"] == "Warning"]


def test_a_wrong_field_is_refused_at_apply(scene: OperatorScene) -> None:
    before = end_state(scene)

    with pytest.raises(Refused, match=r"spec\.source\.endpoint"):
        scene.create("wrong-field", source__endpoint="flights")

    assert difference(before, end_state(scene)) == ""


def test_other_objects_keep_working(scene: OperatorScene, silent: str) -> None:
    tunnels = len(scene.service.call("state")["instances"][0]["tunnels"])
    for name, bad in CASES.items():
        scene.create(f"all-{name}", **_changes(scene, f"all-{name}", bad, silent))
    scene.kube.patch("TablestoreTunnel", scene.namespace, "good", {"spec": {"replicas": 2}})

    scene.until(lambda: scene.status("good").get("replicas") == 2, "the healthy object is scaled", seconds=60)
    scene.until(lambda: all(scene.condition("Ready", f"all-{name}") for name in CASES), "every bad one says why")

    assert len(scene.service.call("state")["instances"][0]["tunnels"]) == tunnels
