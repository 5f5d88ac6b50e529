"""Times as the status shows them."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_time(time_s: float | None) -> str | None:
    """Unix seconds as RFC 3339 in UTC with milliseconds; None stays None."""
    if time_s is None:
        return None
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
