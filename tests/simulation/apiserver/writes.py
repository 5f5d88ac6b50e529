"""What an object becomes by a write: create, replace, merge patch and server-side apply. Pure.

Each function returns the new object with its `managedFields`; the caller gives it a version and stores it. A write that
changes nothing returns an equal object, so that the caller can leave it out as the API server does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.simulation.apiserver.fields import changed_fields, difference, fields_of, managers, merged, removed, union
from tests.simulation.apiserver.refusal import conflict
from tests.simulation.apiserver.store import copied

Manifest = dict[str, Any]


def merge_patched(live: Mapping[str, Any], patch: Mapping[str, Any]) -> Manifest:
    """A JSON merge patch: None removes a field, lists are replaced (RFC 7386)."""
    result = dict(live)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            below = result.get(key)
            result[key] = merge_patched(below if isinstance(below, Mapping) else {}, value)
        else:
            result[key] = copied(value)
    return result


def updated(live: Mapping[str, Any] | None, wanted: Mapping[str, Any], manager: str) -> Manifest:
    """The object after a create, replace or patch by a manager, who owns what it changed."""
    new = copied(dict(wanted))
    before = live or {"metadata": {}}
    entries = _entries(before)
    mine = changed_fields(before, new)
    if mine or live is None:
        for owner in entries:
            if owner != (manager, "Update"):
                entries[owner] = difference(entries[owner], mine)
        entries[manager, "Update"] = union(entries.get((manager, "Update"), {}), mine)
    everything = fields_of(new)
    return _with_managers(new, {key: _common(fields, everything) for key, fields in entries.items()})


def applied(live: Mapping[str, Any] | None, manifest: Mapping[str, Any], manager: str, *, force: bool) -> Manifest:
    """The object after a server-side apply: what the manager no longer names, and nobody else owns, is removed.

    Raises:
        Refusal: 409, another manager owns a field with another value and `force` is not set.
    """
    wanted = fields_of(manifest)
    if live is None:
        return _with_managers(copied(dict(manifest)), {(manager, "Apply"): wanted})
    entries = _entries(live)
    before = entries.pop((manager, "Apply"), {})
    new = merged(live, manifest)
    contested = changed_fields(live, new)
    for key in entries:
        kept = difference(entries[key], contested)
        if kept != entries[key] and not force:
            raise conflict(f"Apply failed with 1 conflict: conflict with {key[0]!r}")
        entries[key] = kept
    abandoned = difference(before, wanted)
    for fields in entries.values():
        abandoned = difference(abandoned, fields)
    new = removed(new, abandoned)
    new.setdefault("metadata", {})
    entries[manager, "Apply"] = wanted
    return _with_managers(new, entries)


def _entries(live: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(name, operation): fields for name, operation, fields in managers(live["metadata"])}


def _common(fields: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a field set that still exists in the object."""
    found: dict[str, Any] = {}
    for key, below in fields.items():
        if key == ".":
            found[key] = {}
        elif key in known:
            found[key] = _common(below, known[key]) if below and known[key] else below
    return found


def _with_managers(manifest: Manifest, entries: Mapping[tuple[str, str], Mapping[str, Any]]) -> Manifest:
    listed = [
        {"manager": name, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": dict(fields)}
        for (name, operation), fields in sorted(entries.items())
        if fields
    ]
    manifest["metadata"] = {**manifest["metadata"], "managedFields": listed}
    return manifest
