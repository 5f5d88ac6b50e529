"""An API server in memory: objects by kind and name, with resource versions, and a list of the writes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import NO_VERSION, Kind, Manifest, kind_of
from ots_tunnel_operator.names import FIELD_MANAGER

Change = Mapping[str, Any]


@dataclass
class KubeMemory:
    """The calls of `Kube` that change or read single objects; every object lives in one namespace."""

    objects: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    writes: list[tuple[str, str, str]] = field(default_factory=list)
    """(verb, kind, name), in order."""
    refusal: KubeError | None = None
    """Raised by every write."""
    kind_refusals: dict[str, KubeError] = field(default_factory=dict)
    """Raised by every write, and every dry run, of a kind."""
    trials: int = 0
    """Dry runs."""
    trial_refusal: KubeError | None = None
    """Raised by every dry run."""
    _version: int = 0

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        found = self.objects.get((kind.kind, name))
        return copy.deepcopy(found)

    async def stored_version(self, kind: Kind, namespace: str, name: str) -> str:
        found = self.objects.get((kind.kind, name))
        return "" if found is None else str(found["metadata"].get("resourceVersion") or "")

    async def list(self, kind: Kind, namespace: str, selector: str) -> list[Manifest]:
        return [copy.deepcopy(found) for (name, _), found in self.objects.items() if name == kind.kind]

    async def apply(self, manifest: Manifest) -> Manifest:
        kind, metadata = kind_of(manifest).kind, manifest["metadata"]
        if metadata.get("resourceVersion") == NO_VERSION and (kind, metadata["name"]) in self.objects:
            raise KubeError(409, "Conflict", "the object exists")
        entry = {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": _fields(_tracked(manifest))}
        applied = manifest | {"metadata": manifest["metadata"] | {"managedFields": [entry]}}
        return self._store("apply", kind, metadata["name"], applied)

    async def try_apply(self, manifest: Manifest) -> None:
        self.trials += 1
        if (refusal := self.trial_refusal or self.kind_refusals.get(manifest["kind"])) is not None:
            raise refusal

    def edit(self, kind: str, name: str, *path: str, value: Any = None) -> None:
        """Change a field as another client does, which takes it from the operator; None removes it."""
        self._version += 1
        found = self.objects[kind, name]
        found["metadata"]["resourceVersion"] = str(self._version)
        owned = found["metadata"]["managedFields"][0]["fieldsV1"]
        *parents, last = path
        for parent in parents:
            found, owned = found[parent], owned[f"f:{parent}"]
        owned.pop(f"f:{last}", None)
        if value is None:
            del found[last]
        else:
            found[last] = value

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        return self._store("create", kind.kind, manifest["metadata"]["name"], manifest)

    async def patch(self, kind: Kind, namespace: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        return self._store("patch", kind.kind, name, _merged(self.objects.get((kind.kind, name), {}), change))

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> None:
        self._write("delete", kind.kind, name)
        found = self.objects.get((kind.kind, name), {}).get("metadata", {}).get("uid", "")
        if uid and found and found != uid:
            raise KubeError(409, "Conflict", f"the UID in the precondition is {uid}, the object has {found}")
        self.objects.pop((kind.kind, name), None)

    def _store(self, verb: str, kind: str, name: str, manifest: Mapping[str, Any]) -> Manifest:
        self._write(verb, kind, name)
        self._version += 1
        stored = copy.deepcopy(dict(manifest))
        stored["metadata"] = {**stored.get("metadata", {}), "resourceVersion": str(self._version)}
        self.objects[kind, name] = stored
        return copy.deepcopy(stored)

    def _write(self, verb: str, kind: str, name: str) -> None:
        if (refusal := self.refusal or self.kind_refusals.get(kind)) is not None:
            raise refusal
        self.writes.append((verb, kind, name))


def _tracked(manifest: Change) -> dict[str, Any]:
    untracked = {"name", "namespace", "uid", "resourceVersion"}
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in untracked}
    return {key: value for key, value in manifest.items() if key not in {"apiVersion", "kind"}} | {"metadata": metadata}


def _fields(value: Any) -> dict[str, Any]:
    """FieldsV1 of a value; every list is owned as a whole."""
    return {f"f:{key}": _fields(below) for key, below in value.items()} if isinstance(value, Mapping) else {}


def _merged(target: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """A merge patch: None removes a field, lists are replaced."""
    merged = dict(target)
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            merged[key] = _merged(merged.get(key) or {}, value)
        else:
            merged[key] = value
    return merged
