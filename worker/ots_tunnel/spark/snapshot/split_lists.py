"""The frozen list of splits in the cluster: an immutable ConfigMap beside the progress record, which owns it.

It is written once, before the first row is read. Its name has the uid of the record and a digest of the list, so that
neither a list of another record nor another list is ever taken for it. Kubernetes deletes it after the record.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Protocol

from ots_tunnel.errors import CodecError, OwnershipLost
from ots_tunnel.snapshot.record import LIST_KEY, SPLITS_KEY, binary_item
from ots_tunnel.snapshot.splits import SplitList, deserialise

#: A ConfigMap as JSON.
Document = dict[str, Any]
#: Hexadecimal digits of the digest in a list's name.
_DIGITS = 12


class ListCalls(Protocol):
    """What is called for a list; see `cluster.ConfigMaps`."""

    def get(self, name: str) -> Document | None:
        """The ConfigMap; None if it does not exist."""
        ...

    def make(self, config_map: Document) -> None:
        """Make a ConfigMap; one of its name stays as it is."""
        ...


def store_list(config_maps: ListCalls, record: Document, payload: bytes) -> str:
    """Store a serialised list for a progress record; return the name of its ConfigMap.

    The same list may be stored already: by a driver that was killed before it wrote the record.

    Raises:
        OwnershipLost: a ConfigMap of this name holds something else.
    """
    metadata = record["metadata"]
    digest = hashlib.sha256(metadata["uid"].encode() + b"\0" + payload).hexdigest()
    name = f"{metadata['name']}-splits-{digest[:_DIGITS]}"
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]}
    config_maps.make(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": [owner]},
            "immutable": True,
            "binaryData": {SPLITS_KEY: base64.b64encode(payload).decode()},
        }
    )
    stored = config_maps.get(name)
    if stored is None or binary_item(stored, SPLITS_KEY) != payload or stored.get("immutable") is not True:
        raise OwnershipLost(f"ConfigMap {name!r}: it is not the list of splits that this driver has made")
    return name


def read_list(config_maps: ListCalls, record: Document) -> SplitList:
    """The list of a progress record; that of an earlier release is in the record itself.

    Raises:
        CodecError: the list is damaged, or its ConfigMap is gone.
    """
    name = (record.get("data") or {}).get(LIST_KEY)
    if name is None:
        return deserialise(binary_item(record, SPLITS_KEY))
    stored = config_maps.get(name)
    if stored is None:
        raise CodecError(
            f"ConfigMap {name!r}, the list of splits: it is gone, and without it nobody knows what is copied: "
            f"delete ConfigMap {record['metadata']['name']!r} and empty the destination to copy again"
        )
    return deserialise(binary_item(stored, SPLITS_KEY))
