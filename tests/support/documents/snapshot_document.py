"""The document of a snapshot driver."""

from __future__ import annotations

from typing import Any

DOCUMENT: dict[str, Any] = {
    "source": {
        "endpoint": "http://a.example",
        "instance": "a",
        "table": "t",
        "credentials": {"directory": "/etc/ots/secrets/source"},
    },
    "sink": {
        "tablestore": {
            "endpoint": "http://b.example",
            "instance": "b",
            "table": "t",
            "credentials": {"directory": "/etc/ots/secrets/sink"},
        }
    },
    "progress": {"namespace": "shop", "configMap": "orders-snapshot", "label": "t1"},
}
