"""How far two pages of rows are alike; what differs is for others to look at."""

from __future__ import annotations

from typing import NamedTuple

from ots_tunnel.protocol.plainbuffer.compiled import native


class Match(NamedTuple):
    """Rows that are the same bytes in both pages: how many bytes, rows, columns and versions."""

    bytes: int
    rows: int
    cells: int
    versions: int


NOTHING = Match(0, 0, 0, 0)


def match_rows(first: bytes, at: int, second: bytes, other: int) -> Match:
    """The equal rows in front: of one page from offset `at`, of the other from `other`.

    It may stop at any row, equal or not, and without the compiled codec it does so at the first: whoever calls
    compares the next row by itself, which is the reference.
    """
    return NOTHING if native is None else Match(*native.match_rows(first, at, second, other))
