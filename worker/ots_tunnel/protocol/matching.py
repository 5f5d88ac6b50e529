"""The equal rows at the front of two pages of rows; what differs is compared elsewhere."""

from __future__ import annotations

from typing import NamedTuple

from ots_tunnel.protocol.plainbuffer.compiled import native


class Match(NamedTuple):
    """Count of rows that are the same bytes in both pages, with their bytes, columns and versions."""

    bytes: int
    rows: int
    cells: int
    versions: int


NOTHING = Match(0, 0, 0, 0)


def match_rows(first: bytes, at: int, second: bytes, other: int) -> Match:
    """Count the equal rows from offset `at` of one page and offset `other` of the other page on.

    The count may end before an equal row; without the compiled codec it is always 0. The caller compares the next
    row itself, and that comparison is the reference.
    """
    return NOTHING if native is None else Match(*native.match_rows(first, at, second, other))
