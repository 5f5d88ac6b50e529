"""Conversion between RFC 3339 texts and seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from math import floor


def timestamp(seconds: float) -> str:
    """Format seconds since 1970 as RFC 3339 in UTC with whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def exact_timestamp(seconds: float) -> str:
    """Format seconds since 1970 as RFC 3339 in UTC with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str | None) -> float | None:
    """Parse an RFC 3339 text into seconds since 1970; None for a missing or malformed text."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def latest_time(text: str | None) -> float | None:
    """The end of the second that a text names: Kubernetes cuts its times to whole seconds; None as in `parse_time`."""
    found = parse_time(text)
    return None if found is None else float(floor(found) + 1)
