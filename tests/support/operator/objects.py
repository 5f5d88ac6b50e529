"""Objects for tests: a complete small one, and changes to it."""

from __future__ import annotations

import copy
from typing import Any

EMULATOR = "http://ots-emulator:8080"


def tunnel_object(name: str = "flights-copy", **changes: Any) -> dict[str, Any]:
    """A TablestoreTunnel; a change is `path__to__field=value` below spec, None removes the field."""
    credentials = {"secretRef": {"name": "ots-credentials"}}
    document: dict[str, Any] = {
        "apiVersion": "ots-tunnel.dev/v1alpha1",
        "kind": "TablestoreTunnel",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "source": {
                "endpoint": EMULATOR,
                "instance": "demo",
                "table": "flights",
                "credentials": credentials,
                "tunnel": {"name": "flights-copy", "type": "BaseAndStream"},
            },
            "sink": {
                "tablestore": {
                    "endpoint": EMULATOR,
                    "instance": "demo",
                    "table": "flights_copy",
                    "credentials": credentials,
                }
            },
        },
    }
    return changed(document, **changes)


def changed(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A copy of the object with other fields."""
    document = copy.deepcopy(document)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = document["spec"]
        for parent in parents:
            # a copy: what stands there may be a change before this one, which its caller shares with other tests
            place[parent] = dict(place.get(parent) or {})
            place = place[parent]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return document
