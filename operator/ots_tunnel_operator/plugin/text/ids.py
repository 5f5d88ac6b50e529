"""Ids of channels, shortened as far as they can be told apart. Pure.

A stream channel's id is a UUID and a time in microseconds, so that its first 8 characters are usually enough.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Fewest characters of an id.
LEAST = 8


def shortest(ids: Iterable[str]) -> int:
    """The number of first characters that tell the ids apart, at least `LEAST`."""
    found = set(ids)
    longest = max(map(len, found), default=LEAST)
    return next(
        (width for width in range(LEAST, longest) if len({each[:width] for each in found}) == len(found)), longest
    )
