"""Rows that are wider than an answer: each answer ends after a cell, the next one continues (docs/data-plane.md 2.6).

A token is the name and the version of the last returned cell.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ots_emulator.refusal import request_invalid
from ots_emulator.tables.cells import build_image, cells_of, scan_image

#: Mark, version and length of the name, before the name.
_HEAD = struct.Struct("<cqH")
_MARK = b"W"


class Cut(NamedTuple):
    """A part of a row; `token` is the start of the next part, None after the last one."""

    image: bytes
    token: bytes | None


def cut_row(image: bytes, limit: int, token: bytes) -> Cut:
    """Return the part of a row after `token` (empty: from its start) that ends with the cell that reaches `limit`.

    Args:
        limit: bytes of cells.

    Raises:
        RequestRefusal: the token is malformed.
    """
    if not token and len(image) <= limit:
        return Cut(image, None)
    span = scan_image(image)
    cells = cells_of(span)
    if token:
        behind = _read(token)
        cells = [cell for cell in cells if cell.order > behind]
    size = 0
    for count, cell in enumerate(cells, 1):
        size += len(cell.raw)
        if size >= limit and count < len(cells):
            return Cut(
                build_image(span, cells[:count]), _HEAD.pack(_MARK, cell.timestamp_ms, len(cell.name)) + cell.name
            )
    return Cut(build_image(span, cells), None)


def _read(token: bytes) -> tuple[bytes, int]:
    try:
        mark, timestamp_ms, size = _HEAD.unpack_from(token)
    except struct.error:
        mark, timestamp_ms, size = b"", 0, 0
    name = token[_HEAD.size :]
    if mark != _MARK or len(name) != size:
        raise request_invalid("Invalid token.")
    return name, -timestamp_ms
