"""Which worker a document is for, as far as its source tells."""

from __future__ import annotations

from typing import Any


def is_of_stream(document: Any) -> bool:
    """Whether it names a table of leases, and no tunnel."""
    return _names(document, "leaseTable") and not (_names(document, "tunnelId") or _names(document, "tunnelName"))


def is_of_tunnel(document: Any) -> bool:
    """Whether it names a tunnel by its id, and no table of leases."""
    return _names(document, "tunnelId") and not _names(document, "leaseTable")


def _names(document: Any, field: str) -> bool:
    source = document.get("source") if isinstance(document, dict) else None
    return isinstance(source, dict) and field in source
