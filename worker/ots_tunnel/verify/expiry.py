"""Cells near the end of their life: one table may hide them before the other; pure (docs/architecture.md 4.5)."""

from __future__ import annotations

from collections.abc import Iterable

#: Seconds around the end of a cell's life in which nothing is said of it; more than clocks and pages differ.
EXPIRY_MARGIN = 300.0


def doubtful_until(times_to_live: Iterable[int], now: float, margin: float = EXPIRY_MARGIN) -> int | None:
    """The newest version, milliseconds, that is left out when tables are compared; None where nothing expires.

    Args:
        times_to_live: seconds, of both tables; not positive is for ever. The shorter one decides, since what one
            table has hidden says nothing of the other.
        now: seconds since 1970.
        margin: seconds.
    """
    finite = [seconds for seconds in times_to_live if seconds > 0]
    return int((now + margin - min(finite)) * 1000) if finite else None
