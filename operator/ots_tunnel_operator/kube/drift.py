"""Whether an existing Kubernetes object still is what was applied. Pure.

Theory of operation
-------------------
Two facts decide, and both come from the object itself, so that a restarted operator needs no memory of its own:

    what was applied    an annotation with the hash of the manifest, written by the same call
    what is still ours  the entry of our field manager in metadata.managedFields

The API server takes a field out of our entry as soon as another client changes or removes it, whatever the field is.
So an object is current exactly if it carries the hash of the manifest, and our entry owns every field of the manifest
and no other. Values are not compared: the API server completes them with defaults and rewrites quantities ("1000m"
becomes "1"), and a value that another client changed is no longer ours. Fields that other clients add beside ours are
theirs and stay; a list or map that is owned as a whole, such as tolerations or nodeSelector, is set back.

The shape of the entry (FieldsV1) tells how the kind owns a list or map, so no schema is needed here:

    f:NAME                    member of a map
    k:{"name":"worker"}       item of a list with keys; a key that the manifest leaves out has a default
    v:VALUE                   item of a set
    .                         the item or map itself, beside its members
    {}                        a leaf: a scalar, an empty map, or a list or map that is owned as a whole

Example: `kubectl edit` removes a toleration that the podTemplate asks for. `f:tolerations` leaves our entry, the next
pass finds the field of the manifest without an owner, and applies the manifest again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.names import ANNOTATION_RENDERED_HASH, FIELD_MANAGER

#: Fields that identify an object; the API server does not track who owns them.
_IDENTITY = frozenset({"apiVersion", "kind"})
_METADATA_IDENTITY = frozenset({"name", "namespace"})


def stamp(manifest: Mapping[str, Any]) -> str:
    """The hash that an object or a stamped manifest carries; empty where it carries none."""
    return str((manifest["metadata"].get("annotations") or {}).get(ANNOTATION_RENDERED_HASH) or "")


def stamped(manifest: Manifest) -> Manifest:
    """Return the manifest with an annotation that holds its hash; this form is applied and compared."""
    metadata = manifest["metadata"]
    annotations = metadata.get("annotations") or {}
    annotations = annotations | {ANNOTATION_RENDERED_HASH: _hash(manifest)}
    return manifest | {"metadata": metadata | {"annotations": annotations}}


def owned_fields(existing: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields that our server-side apply owns in an object, as FieldsV1; empty where there are none."""
    entries = [
        entry.get("fieldsV1") or {}
        for entry in existing["metadata"].get("managedFields") or ()
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply" and not entry.get("subresource")
    ]
    # several entries exist only for several versions of a kind; the operator uses one version of each
    return entries[0] if len(entries) == 1 else {}


def owned_hash(existing: Mapping[str, Any]) -> str:
    """A hash of the fields that our server-side apply owns in an object: what to remember of them."""
    return _hash(owned_fields(existing))


def is_current(existing: Mapping[str, Any], manifest: Manifest, accepted: str = "") -> bool:
    """Whether applying the manifest would change nothing.

    Args:
        existing: the object as the API server has it, with its managedFields.
        manifest: a `stamped` manifest.
        accepted: `owned_hash` right after this manifest was applied; empty where it is not known. These fields count
            as complete even if the API server keeps fewer or more of them than the manifest has.
    """
    if stamp(existing) != stamp(manifest):
        return False
    owned = owned_fields(existing)
    if not owned:
        return False
    return owned_hash(existing) == accepted or owns_exactly(owned, _tracked(manifest))


def owns_exactly(fields: Mapping[str, Any], value: Any) -> bool:
    """Whether these fields (FieldsV1) are exactly those of a value of a manifest."""
    members = {name: below for name, below in fields.items() if name != "."}
    if not members:
        return "." not in fields or not value
    if isinstance(value, Mapping):
        return _owns_map(members, value)
    if not isinstance(value, Sequence) or isinstance(value, str):
        return False
    if all(name.startswith("k:") for name in members):
        return _owns_items(members, value)
    owned = [json.loads(name.removeprefix("v:")) for name in members if name.startswith("v:")]
    return len(owned) == len(members) and sorted(map(str, owned)) == sorted(map(str, value))


def _owns_map(members: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    # an empty list with keys owns nothing
    wanted = {f"f:{name}": item for name, item in value.items() if item != [] or f"f:{name}" in members}
    return members.keys() == wanted.keys() and all(owns_exactly(members[name], wanted[name]) for name in members)


def _owns_items(members: Mapping[str, Any], items: Sequence[Any]) -> bool:
    if len(members) != len(items):
        return False
    left = list(items)
    for name, below in members.items():
        keys = json.loads(name.removeprefix("k:"))
        item = next((found for found in left if _has_keys(found, keys)), None)
        if item is None or not owns_exactly(below, item):
            return False
        left.remove(item)
    return True


def _has_keys(item: Any, keys: Mapping[str, Any]) -> bool:
    """Whether a list's item has these keys; an absent one has its default, such as a port's protocol."""
    if not isinstance(item, Mapping):
        return False
    given = [item[key] == value for key, value in keys.items() if key in item]
    return bool(given) and all(given)


def _tracked(manifest: Manifest) -> dict[str, Any]:
    """The part of a manifest of which the API server tracks who owns it."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _METADATA_IDENTITY}
    return {key: value for key, value in manifest.items() if key not in _IDENTITY} | {"metadata": metadata}


def _hash(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
