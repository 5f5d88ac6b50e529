"""Cells as they are stored: wire bytes that are joined and never encoded again.

A stored row (an image) is its PlainBuffer row without header: the key cells, then the attribute cells ordered by name
and, within a name, by version, newest first. Reads return these bytes.

CRC-8 is linear, so stamping a cell with a version does not read its value again:
crc(name value ts) = crc(ts from 0) ^ crc(eight zero bytes from crc(name value)).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from ots_tunnel.protocol.plainbuffer.building import join_row
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.plainbuffer.spans import RowSpan, scan_row

_U32 = struct.Struct("<I")
_I64 = struct.Struct("<q")
_ZERO_STEP = bytes(crc8(bytes(8), start) for start in range(256))

HEADER = b"\x75\x00\x00\x00"


class Cell(NamedTuple):
    """One version of one attribute column; `raw` is the whole cell on the wire, its checksum included."""

    name: bytes
    timestamp_ms: int
    raw: bytes
    checksum: int
    value: bytes

    @property
    def order(self) -> tuple[bytes, int]:
        """Sort key within a row: by name, newest version first."""
        return self.name, -self.timestamp_ms


class Stamp:
    """Stamps cells without a version with the server's time.

    `endings` and `checksums` are indexed by the cell's checksum: its new last bytes, and its new checksum.
    """

    def __init__(self, timestamp_ms: int) -> None:
        self.timestamp_ms = timestamp_ms
        stamp = _I64.pack(timestamp_ms)
        base = crc8(stamp)
        self.checksums = bytes(base ^ step for step in _ZERO_STEP)
        self.endings = [b"\x07" + stamp + b"\x0a" + bytes((checksum,)) for checksum in self.checksums]

    def cell(self, name: bytes, raw: bytes, checksum: int, value: bytes) -> Cell:
        """Return the stamped cell; `raw` must be a put without version."""
        return Cell(name, self.timestamp_ms, raw[:-2] + self.endings[checksum], self.checksums[checksum], value)


@lru_cache(maxsize=4)
def stamp_at(timestamp_ms: int) -> Stamp:
    """Return the stamp of one millisecond; the rows of a batch share it."""
    return Stamp(timestamp_ms)


def make_cell(name: bytes, value: bytes, timestamp_ms: int) -> Cell:
    """Build a put cell from its value (type byte and payload)."""
    stamp = _I64.pack(timestamp_ms)
    checksum = crc8(stamp, crc8(value, crc8(name)))
    parts = (b"\x03\x04", _U32.pack(len(name)), name, b"\x05", _U32.pack(len(value)), value, b"\x07", stamp)
    return Cell(name, timestamp_ms, b"".join(parts) + b"\x0a" + bytes((checksum,)), checksum, value)


def integer_value(value: int) -> bytes:
    """Encode an integer as type byte and payload."""
    return b"\x00" + _I64.pack(value)


def integer_of(value: bytes) -> int | None:
    """Decode type byte and payload; None when the value is not an integer."""
    return int(_I64.unpack_from(value, 1)[0]) if value[0] == 0 else None


def cells_of(span: RowSpan) -> list[Cell]:
    """Return the cells of a stored row."""
    return [Cell(cell.name, cell.timestamp_ms or 0, cell.raw, cell.checksum, cell.value or b"") for cell in span.cells]


def scan_image(image: bytes) -> RowSpan:
    """Parse a stored row."""
    return scan_row(image, 0)


def build_image(span: RowSpan, cells: Iterable[Cell], *, delete: bool = False) -> bytes:
    """Join the key of a row with cells into a row without header; cells must be in order."""
    pairs = [(cell.raw, cell.checksum) for cell in cells]
    return join_row(span.key, span.key_checksums, pairs, delete=delete, header=False)


def key_cells(image: bytes, columns: int) -> bytes:
    """Return the wire bytes of the key cells a stored row begins with; `columns` is how many it has."""
    end = 1
    for _ in range(columns):
        value_at = end + 6 + _U32.unpack_from(image, end + 2)[0]
        end = value_at + 7 + _U32.unpack_from(image, value_at + 1)[0]
    return image[1:end]


def key_image(span: RowSpan) -> bytes:
    """Build the row that holds only the key."""
    return join_row(span.key, span.key_checksums, (), header=False)


def in_order(cells: Sequence[Cell]) -> list[Cell]:
    """Sort cells; of those with the same name and version the last one stays."""
    last = {cell.order: cell for cell in cells}
    return [last[order] for order in sorted(last)]


def newest(cells: Iterable[Cell], max_versions: int) -> list[Cell]:
    """Return the newest versions of each column; cells must be in order."""
    kept: list[Cell] = []
    for _, versions in groupby(cells, key=lambda cell: cell.name):
        kept.extend(version for version, _ in zip(versions, range(max_versions), strict=False))
    return kept


def has_versions(cells: Sequence[Cell]) -> bool:
    """Whether some column has more than one version; cells must be in order."""
    return any(cells[i].name == cells[i + 1].name for i in range(len(cells) - 1))
