"""Conversion between RFC 3339 texts and seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(seconds: float) -> str:
    """Format seconds since 1970 as RFC 3339 in UTC with whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str | None) -> float | None:
    """Parse an RFC 3339 text into seconds since 1970; None for a missing or malformed text."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
