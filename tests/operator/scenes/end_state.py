"""Final state of a run, without the ids, times and addresses that differ between two equal runs."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from typing import Any

from tests.operator.scenes.operator_scene import OperatorScene
from tests.support.kube.kube_api import KINDS

Document = dict[str, Any]

#: Metadata that the API server sets anew for every object.
_OWN_METADATA = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace")
#: Kinds that controllers of Kubernetes create under generated names: counted, not compared.
_COUNTED = ("ReplicaSet", "Pod")
#: Kinds that record history and not state.
_LEFT_OUT = ("Event",)
#: Objects that Kubernetes itself creates in every namespace.
_OF_KUBERNETES = ("kube-root-ca.crt",)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
#: Annotations with hashes of documents that contain a tunnel id or an address.
_HASHES = (
    "ots-tunnel.dev/config-hash",
    "ots-tunnel.dev/made-from",
    "ots-tunnel.dev/rendered-hash",
    "ots-tunnel.dev/template-hash",
)
#: End of the name of a list of splits: a hash of the uid of its record and of the list.
_LIST_HASH = re.compile(r"-splits-[0-9a-f]{12}\b")
#: Figures that depend on the time of the observation; the rest of the status must be equal.
_MOVING_STATUS = ("lag", "throughput")
_MOVING_BASE = "etaSeconds"


def end_state(scene: OperatorScene) -> Document:
    """Collect the objects of the namespace with their statuses, and the emulator's tables and tunnels."""
    objects: Document = {}
    for kind in KINDS:
        items = scene.kube.list(kind, scene.namespace) if kind not in _LEFT_OUT else []
        if kind in _COUNTED:
            objects[kind] = len(items)
            continue
        for item in items:
            if item["metadata"]["name"] not in _OF_KUBERNETES:
                objects[f"{kind}/{item['metadata']['name']}"] = _without_own(item)
    state: Document = scene.service.call("state")
    (instance,) = state["instances"]
    tables = {table["name"]: _table(scene, table["name"]) for table in instance["tables"]}
    tunnels = [_tunnel(tunnel) for tunnel in instance["tunnels"]]
    return _neutral({"objects": objects, "tables": tables, "tunnels": tunnels}, _names(scene, instance))


def difference(expected: Document, found: Document) -> str:
    """Return a unified diff of two states; empty when they are equal."""
    texts = [json.dumps(state, indent=1, sort_keys=True).splitlines() for state in (expected, found)]
    return "\n".join(difflib.unified_diff(*texts, "undisturbed", "after the kill", lineterm="", n=2))


def _without_own(item: Document) -> Document:
    metadata = {key: value for key, value in item["metadata"].items() if key not in _OWN_METADATA}
    status = {key: value for key, value in (item.get("status") or {}).items() if key not in _MOVING_STATUS}
    if "base" in status:
        status["base"] = {key: value for key, value in status["base"].items() if key != _MOVING_BASE}
    return {**item, "metadata": metadata, **({"status": status} if status else {})}


def _table(scene: OperatorScene, name: str) -> str:
    return repr(scene.admin.describe(name))


def _tunnel(tunnel: Document) -> Document:
    kept = {key: tunnel[key] for key in ("id", "name", "table", "type", "stage", "expired", "clients")}
    channels = Counter(f"{item['type']} {item['status']} {item['owner']}" for item in tunnel["channels"])
    return kept | {"channels": dict(channels)}


def _names(scene: OperatorScene, instance: Document) -> dict[str, str]:
    """Map each value that differs between runs to its placeholder; longer values come first."""
    address = scene.endpoint.split("://")[1]
    names = {scene.endpoint: "ENDPOINT", address: "ADDRESS", scene.namespace: "NAMESPACE"}
    for tunnel in instance["tunnels"]:
        names[tunnel["id"]] = f"TUNNEL-{tunnel['name']}"
    for kind in KINDS:
        for item in scene.kube.list(kind, scene.namespace):
            uid = item["metadata"]["uid"]
            names[uid] = f"UID-{kind}"
            names[uid[:8]] = f"TAG-{kind}"
            if kind in _COUNTED and item["metadata"].get("ownerReferences"):
                names[item["metadata"]["name"]] = f"NAME-{kind}"
    return dict(sorted(names.items(), key=lambda entry: -len(entry[0])))


def _neutral(state: Document, names: dict[str, str]) -> Document:
    text = json.dumps(state)
    for name, stands_for in names.items():
        text = text.replace(name, stands_for)
    # YAML quotes the start of a uid where it could be a number
    text = re.sub(r"'(TAG-\w+)'", r"\1", text)
    text = _TIME.sub("TIME", text)
    text = _LIST_HASH.sub("-splits-HASH", text)
    for annotation in _HASHES:
        text = re.sub(rf'("{re.escape(annotation)}": )"[0-9a-f.]+"', r'\1"HASH"', text)
    neutral: Document = json.loads(text)
    return neutral
