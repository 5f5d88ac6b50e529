"""What every child of an object carries: its labels, and the reference by which it goes with the object. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator import API_VERSION, KIND, names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest


def child(obj: TablestoreTunnel, api_version: str, kind: str, name: str, role: str) -> Manifest:
    """A child with nothing but its metadata; `role` is one of `names.ROLE_*`."""
    return {"apiVersion": api_version, "kind": kind, "metadata": child_metadata(obj, name, role)}


def child_metadata(obj: TablestoreTunnel, name: str, role: str) -> dict[str, Any]:
    """Metadata of a child: it goes with its object."""
    return {
        "name": name,
        "namespace": obj.namespace,
        "labels": names.labels(obj.name, role),
        "ownerReferences": [owner_reference(obj)],
    }


def owner_reference(obj: TablestoreTunnel) -> dict[str, Any]:
    """The reference by which a child is garbage-collected with the object."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": obj.name,
        "uid": obj.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_owned(existing: Mapping[str, Any], uid: str, labels: Mapping[str, str]) -> bool:
    """Whether an object that exists belongs to the object with this uid.

    An owner reference says so; objects that outlive their owner (kept under Retain) carry our labels instead.
    """
    metadata = existing.get("metadata", {})
    owners = metadata.get("ownerReferences") or ()
    if any(owner.get("uid") == uid for owner in owners):
        return True
    found = metadata.get("labels") or {}
    return not owners and bool(labels) and all(found.get(key) == value for key, value in labels.items())
