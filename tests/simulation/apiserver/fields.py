"""Which fields of an object a writer owns, as the API server keeps them in `metadata.managedFields`. Pure.

Theory of operation
-------------------
A field set is the JSON form FieldsV1: a tree of dictionaries. `f:name` is a field of a mapping, `k:{...}` an entry of
a list whose entries have a key, `v:...` an entry of a list that is a set; `.` stands for the entry itself. A list
without a key, such as `args`, is one value and belongs to one writer as a whole.

Example: `{"spec": {"containers": [{"name": "worker", "image": "i"}]}}` has the field set

    {"f:spec": {"f:containers": {'k:{"name":"worker"}': {".": {}, "f:name": {}, "f:image": {}}}}}

Source: Kubernetes, "Server-Side Apply", structured-merge-diff.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.simulation.apiserver.store import copied

Fields = dict[str, Any]

#: Lists whose entries have a key: name of the list -> fields of the key.
KEYED: Mapping[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "ports": ("containerPort", "protocol"),
    "conditions": ("type",),
    "ownerReferences": ("uid",),
    "imagePullSecrets": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
#: Lists that are sets of plain values.
SETS = frozenset({"finalizers"})
#: Mappings that are one value and belong to one writer as a whole.
ATOMIC = frozenset({"selector", "nodeSelector", "labelSelector", "configMapKeyRef", "secretKeyRef", "fieldRef"})
#: Fields that nobody owns.
_UNOWNED = frozenset({"apiVersion", "kind"})
_UNOWNED_METADATA = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"}
)


def fields_of(manifest: Mapping[str, Any]) -> Fields:
    """Every field of a manifest that can have an owner."""
    owned = {key: value for key, value in manifest.items() if key not in _UNOWNED}
    if "metadata" in owned:
        owned["metadata"] = {key: value for key, value in owned["metadata"].items() if key not in _UNOWNED_METADATA}
        if not owned["metadata"]:
            del owned["metadata"]
    return _fields(owned, "")


def entry_key(entry: Mapping[str, Any], name: str) -> str:
    """The key of an entry in list `name`, as FieldsV1 spells it; a port without a protocol is TCP."""
    found = {part: entry.get(part, "TCP" if part == "protocol" else None) for part in KEYED[name]}
    return "k:" + json.dumps(found, sort_keys=True, separators=(",", ":"))


def is_keyed(name: str, value: Any) -> bool:
    """Whether the list `name` is merged entry by entry."""
    return name in KEYED and isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)


def union(first: Mapping[str, Any], second: Mapping[str, Any]) -> Fields:
    """Fields of either set."""
    merged = copied(dict(first))
    for key, below in second.items():
        merged[key] = union(merged.get(key, {}), below)
    return merged


def difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> Fields:
    """Leaves of the first set that the second does not have; a branch without leaves is dropped."""
    found: Fields = {}
    for key, below in first.items():
        if key not in second:
            found[key] = copied(below)
        elif below:
            rest = difference(below, second[key])
            if rest:
                found[key] = rest
    return found


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> Fields:
    """Fields of `after` that are new or have another value than in `before`."""
    return _changed(_owned(before), _owned(after), "")


def removed(value: Any, fields: Mapping[str, Any], name: str = "") -> Any:
    """The value without these fields; a mapping or an entry that becomes empty thereby goes as well."""
    if isinstance(value, Mapping):
        kept = {}
        for key, below in value.items():
            inner = fields.get(f"f:{key}")
            if inner is None:
                kept[key] = below
            elif inner:
                rest = removed(below, inner, key)
                if rest not in ({}, []):
                    kept[key] = rest
        return kept
    if is_keyed(name, value):
        return [
            entry if (inner := fields.get(entry_key(entry, name))) is None else removed(entry, inner)
            for entry in value
            if "." not in (fields.get(entry_key(entry, name)) or {})
        ]
    if name in SETS and isinstance(value, list):
        return [entry for entry in value if f"v:{json.dumps(entry)}" not in fields]
    return value


def merged(live: Any, applied: Any, name: str = "") -> Any:
    """The live value with every applied field in it; keyed lists are merged entry by entry."""
    if isinstance(applied, Mapping) and isinstance(live, Mapping) and name not in ATOMIC:
        result = dict(live)
        for key, value in applied.items():
            result[key] = merged(live[key], value, key) if key in live else copied(value)
        return result
    if is_keyed(name, applied) and is_keyed(name, live):
        entries = {entry_key(entry, name): entry for entry in live}
        for entry in applied:
            key = entry_key(entry, name)
            entries[key] = merged(entries[key], entry) if key in entries else copied(entry)
        return list(entries.values())
    if name in SETS and isinstance(live, list):
        return live + [entry for entry in applied if entry not in live]
    return copied(applied)


def managers(metadata: Mapping[str, Any]) -> Iterable[tuple[str, str, Fields]]:
    """Manager, operation (Apply or Update) and fields of every entry of `metadata.managedFields`."""
    for entry in metadata.get("managedFields") or ():
        yield entry["manager"], entry["operation"], entry["fieldsV1"]


def _fields(value: Any, name: str) -> Fields:
    if isinstance(value, Mapping) and name not in ATOMIC:
        return {f"f:{key}": _fields(below, key) for key, below in value.items()}
    if is_keyed(name, value):
        return {entry_key(entry, name): {".": {}, **_fields(entry, "")} for entry in value}
    if name in SETS and isinstance(value, list):
        return {f"v:{json.dumps(entry)}": {} for entry in value}
    return {}


def _owned(manifest: Mapping[str, Any]) -> dict[str, Any]:
    owned = {key: value for key, value in manifest.items() if key not in _UNOWNED}
    metadata = owned.get("metadata") or {}
    return owned | {"metadata": {key: value for key, value in metadata.items() if key not in _UNOWNED_METADATA}}


def _changed(before: Any, after: Any, name: str) -> Fields:
    if isinstance(after, Mapping) and isinstance(before, Mapping) and name not in ATOMIC:
        found: Fields = {}
        for key, value in after.items():
            if key not in before:
                found[f"f:{key}"] = _fields(value, key)
            elif before[key] != value:
                found[f"f:{key}"] = _changed(before[key], value, key)
        return found
    if is_keyed(name, after) and is_keyed(name, before):
        known = {entry_key(entry, name): entry for entry in before}
        return {
            key: _changed(known[key], entry, "") if key in known else {".": {}, **_fields(entry, "")}
            for entry in after
            if known.get(key := entry_key(entry, name)) != entry
        }
    return _fields(after, name)
