"""A child that every pass looks at, unpacked once for each of its versions.

Most of its body is managedFields, which tell who wrote which field: of them only who wrote the number of workers is
looked at in every pass. Names and short texts are the same for all objects, so they are kept once: a Deployment takes
12 kB this way.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator.kube.cluster import Reader
from ots_tunnel_operator.kube.kept import version_of
from ots_tunnel_operator.kube.kinds import Kind, Manifest

#: Length of texts that are kept once: names, reasons and numbers, not messages or hashes.
SHORT = 40


async def look_at(reader: Reader, kind: Kind, namespace: str, name: str, before: Manifest | None) -> Manifest | None:
    """One child without most of its managedFields; None where it does not exist. It must not be changed.

    Args:
        before: what the last look returned.

    Raises:
        KubeError: nothing recent is known.
    """
    if before is not None:
        version = version_of(before)
        if version and await reader.stored_version(kind, namespace, name) == version:
            return before
    found = await reader.get(kind, namespace, name)
    return None if found is None else trimmed(found)


def trimmed(manifest: Mapping[str, Any]) -> Manifest:
    """A body with those entries of its managedFields alone that own `spec.replicas`, and of them only that."""
    metadata = manifest["metadata"]
    writers = [
        {"manager": entry.get("manager"), "fieldsV1": {"f:spec": {"f:replicas": {}}}}
        for entry in metadata.get("managedFields") or ()
        if "f:replicas" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]
    found: Manifest = _shared({**manifest, "metadata": {**metadata, "managedFields": writers}})
    return found


def _shared(value: Any) -> Any:
    """The value, with names and short texts that all bodies share."""
    if isinstance(value, str):
        return sys.intern(value) if len(value) <= SHORT else value
    if isinstance(value, Mapping):
        return {sys.intern(str(key)): _shared(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_shared(below) for below in value]
    return value
