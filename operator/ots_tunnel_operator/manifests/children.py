"""Metadata that every child of an object carries: labels and the owner reference. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator import API_VERSION, KIND, names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest


def child(obj: TablestoreTunnel, api_version: str, kind: str, name: str, role: str) -> Manifest:
    """Return a manifest that holds only metadata; `role` is one of `names.ROLE_*`."""
    return {"apiVersion": api_version, "kind": kind, "metadata": child_metadata(obj, name, role)}


def child_metadata(obj: TablestoreTunnel, name: str, role: str) -> dict[str, Any]:
    """Return the metadata of a child, with an owner reference to its object."""
    return {
        "name": name,
        "namespace": obj.namespace,
        "labels": names.labels(obj.name, role),
        "ownerReferences": [owner_reference(obj)],
    }


def owner_reference(obj: TablestoreTunnel) -> dict[str, Any]:
    """Return the reference by which Kubernetes deletes a child after its object."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": obj.name,
        "uid": obj.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_owned(existing: Mapping[str, Any], uid: str, labels: Mapping[str, str]) -> bool:
    """Whether an existing Kubernetes object belongs to the object with this uid.

    An owner reference decides. A child that outlives its owner (deletionPolicy Retain) has no owner reference; it is
    recognized by its labels.
    """
    metadata = existing.get("metadata", {})
    owners = metadata.get("ownerReferences") or ()
    if any(owner.get("uid") == uid for owner in owners):
        return True
    found = metadata.get("labels") or {}
    return not owners and bool(labels) and all(found.get(key) == value for key, value in labels.items())
