"""Merge of a user's pod template over the generated one, in the manner of a strategic-merge patch.

Maps are merged, lists with a merge key are merged by it, every other list or value is replaced, and null removes a
field. Of an item of a list in `RETAIN_KEYS` only the fields that the patch names stay: a volume has one source, so that
a claim replaces an emptyDir. Patch directives such as `$patch` are not interpreted: the API server refuses them as
unknown fields.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

#: Merge keys of the lists of a pod template (k8s.io/api/core/v1, patchMergeKey).
MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}

#: Lists whose items lose the fields that the patch does not name (k8s.io/api/core/v1, patchStrategy retainKeys).
RETAIN_KEYS = frozenset({"volumes"})


def overlay(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `patch` merged over it; both arguments stay unchanged."""
    merged = dict(base)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(key, merged.get(key), value)
    return merged


def _merge(key: str, base: Any, patch: Any) -> Any:
    if isinstance(patch, Mapping):
        return overlay(base if isinstance(base, Mapping) else {}, patch)
    if isinstance(patch, list) and isinstance(base, list) and key in MERGE_KEYS:
        return _merge_list(MERGE_KEYS[key], base, patch, retain=key in RETAIN_KEYS)
    return patch


def _merge_list(merge_key: str, base: Sequence[Any], patch: Sequence[Any], *, retain: bool) -> list[Any]:
    merged = list(base)
    places = {item[merge_key]: place for place, item in enumerate(base) if merge_key in item}
    for item in patch:
        key = item.get(merge_key) if isinstance(item, Mapping) else None
        # the API server does not validate templates: a name may be a list, which names nothing
        place = places.get(key) if isinstance(key, Hashable) else None
        if place is None:
            merged.append(item)
        else:
            kept = {field: value for field, value in merged[place].items() if field in item or not retain}
            merged[place] = overlay(kept, item)
    return merged
