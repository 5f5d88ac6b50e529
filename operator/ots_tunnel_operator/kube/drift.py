"""Comparison of an existing Kubernetes object with the manifest that would be applied. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.kube.kinds import Manifest


def digest(manifest: Manifest) -> str:
    """Hash of a manifest, which changes with every field of it."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def version(existing: Mapping[str, Any]) -> str:
    """Version of an existing object: its uid with its generation, or its resourceVersion where it has none."""
    metadata = existing["metadata"]
    return f"{metadata.get('uid')}/{metadata.get('generation') or metadata.get('resourceVersion')}"


def is_current(existing: Mapping[str, Any], manifest: Manifest) -> bool:
    """Whether applying the manifest would change nothing.

    Where the manifest carries the hash of its spec, the hash decides: another controller completes such an object
    with defaults. Otherwise every field of the manifest must be in the object.
    """
    annotation = (manifest["metadata"].get("annotations") or {}).get(names.ANNOTATION_RENDERED_HASH)
    owned = bool(manifest["metadata"].get("ownerReferences"))
    if owned != bool(existing["metadata"].get("ownerReferences")):
        return False
    if annotation is None:
        return _covers(existing, manifest)
    found = existing["metadata"].get("annotations") or {}
    return bool(found.get(names.ANNOTATION_RENDERED_HASH) == annotation)


def _covers(existing: Any, wanted: Any) -> bool:
    """Whether every field of `wanted` is in `existing`; an absent field equals an empty one."""
    if isinstance(wanted, Mapping):
        return isinstance(existing, Mapping) and all(_covers(existing.get(key), wanted[key]) for key in wanted)
    if isinstance(wanted, list | tuple):
        if not wanted:
            return not existing
        return (
            isinstance(existing, list)
            and len(existing) == len(wanted)
            and all(_covers(have, want) for have, want in zip(existing, wanted, strict=True))
        )
    if wanted in (None, "", {}):
        return existing in (None, "", {}, [])
    return bool(existing == wanted)
