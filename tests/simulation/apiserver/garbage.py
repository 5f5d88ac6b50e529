"""Garbage collection: an object whose owners are all gone is deleted. Pure."""

from __future__ import annotations

from tests.simulation.apiserver.store import Key, Store


def orphans(store: Store) -> list[Key]:
    """Objects that have owners, none of which exists any more, in the order of their names."""
    known = {manifest["metadata"].get("uid") for manifest in store.objects.values()}
    found = []
    for key, manifest in sorted(store.objects.items()):
        owners = manifest["metadata"].get("ownerReferences") or ()
        has_owner = any(owner["uid"] in known for owner in owners)
        if owners and not has_owner and not manifest["metadata"].get("deletionTimestamp"):
            found.append(key)
    return found
