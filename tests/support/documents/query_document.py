"""The document of a query's driver."""

from __future__ import annotations

from typing import Any

QUERY: dict[str, Any] = {
    "source": {
        "endpoint": "http://a.example",
        "instance": "a",
        "table": "t",
        "tunnel": "t-lake",
        "credentials": {"directory": "/etc/ots/secrets/source"},
    },
    "sink": {"files": {"url": "file:///lake/t", "format": "Parquet"}},
    "checkpointDirectory": "/var/lib/ots",
    "progress": {"namespace": "shop", "configMap": "orders-stream", "label": "tunnel-1"},
}
