"""Metadata that every child of an object carries: labels and the owner reference. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator import API_VERSION, KIND, names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.drift import owned_fields
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, Kind, Manifest


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


def is_child(existing: Manifest, kind: Kind, name: str, uid: str) -> bool:
    """Whether what has the name of a child belongs to the object with this name and uid.

    An owner reference decides. An object without any owner is ours as the record of a snapshot, retained from an
    earlier object of this name, by its labels; as anything else only if we applied it, and it has lost its owner to
    another client, such as to `kubectl delete --cascade=orphan`.
    """
    labels: Mapping[str, str] = {}
    if kind is CONFIG_MAP and existing["metadata"]["name"] == names.snapshot_name(name):
        labels = names.identity_labels(name, names.ROLE_SNAPSHOT)
    elif owned_fields(existing):
        labels = {names.LABEL_NAME: name}
    return is_owned(existing, uid, labels)


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
