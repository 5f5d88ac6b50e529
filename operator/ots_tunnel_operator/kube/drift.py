"""Whether an object that exists is what would be applied. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.kube.kinds import Manifest


def digest(manifest: Manifest) -> str:
    """Hash of a manifest."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def version(existing: Mapping[str, Any]) -> str:
    """A text that changes with every change of the applied fields: the generation, where a kind has one."""
    metadata = existing["metadata"]
    return f"{metadata.get('uid')}/{metadata.get('generation') or metadata.get('resourceVersion')}"


def is_current(existing: Mapping[str, Any], manifest: Manifest) -> bool:
    """Whether applying would change nothing.

    Where the manifest carries a hash of itself, others complete the object with defaults and the hash decides.
    """
    annotation = (manifest["metadata"].get("annotations") or {}).get(names.ANNOTATION_RENDERED_HASH)
    owned = bool(manifest["metadata"].get("ownerReferences"))
    if owned != bool(existing["metadata"].get("ownerReferences")):
        return False
    if annotation is None:
        return merged(existing, manifest)
    found = existing["metadata"].get("annotations") or {}
    return bool(found.get(names.ANNOTATION_RENDERED_HASH) == annotation)


def merged(existing: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether every field of `wanted` is in `existing` already, so that applying it would change nothing."""
    return _covers(existing, wanted)


def _covers(existing: Any, wanted: Any) -> bool:
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
