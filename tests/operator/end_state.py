"""Everything that is there in the end, as values that two equal runs share: ids, times and addresses apart."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from typing import Any

from tests.operator.operator_scene import OperatorScene
from tests.support.kube_api import KINDS

Document = dict[str, Any]

#: Set by the API server anew for every object.
_OWN_METADATA = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace")
#: Made by controllers of Kubernetes under names of their own: counted, not compared.
_COUNTED = ("ReplicaSet", "Pod")
#: What happened is not what is there.
_LEFT_OUT = ("Event",)
#: In every namespace, and nobody's business.
_OF_KUBERNETES = ("kube-root-ca.crt",)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
#: Hashes of documents that hold a tunnel id or an address.
_HASHES = ("ots-tunnel.dev/config-hash", "ots-tunnel.dev/rendered-hash")
#: Figures that depend on when one looks; the rest of the status has to be the same.
_MOVING_STATUS = ("lag", "throughput")
_MOVING_BASE = "etaSeconds"


def end_state(scene: OperatorScene) -> Document:
    """Objects of the namespace with their statuses, tables and tunnels of the emulator."""
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
    """Both as text, line by line; empty when they are equal."""
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
    """What differs from run to run, by what stands for it; longer ones first."""
    names = {scene.endpoint: "ENDPOINT", scene.namespace: "NAMESPACE"}
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
    # YAML quotes the head of a uid that could be a number
    text = re.sub(r"'(TAG-\w+)'", r"\1", text)
    text = _TIME.sub("TIME", text)
    for annotation in _HASHES:
        text = re.sub(rf'("{re.escape(annotation)}": )"[0-9a-f]+"', r'\1"HASH"', text)
    neutral: Document = json.loads(text)
    return neutral
