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
from ots_tunnel.protocol.plainbuffer.tags import (
    CELL,
    CELL_CHECKSUM,
    CELL_NAME,
    CELL_START,
    CELL_START_BYTES,
    CELL_TIMESTAMP,
    CELL_VALUE,
    CHECKSUM_BYTES,
    HEADER,
    I64,
    INTEGER,
    ROW_CHECKSUM,
    ROW_DATA,
    TAG_BYTES,
    TAG_LENGTH,
    TAG_LENGTH_BYTES,
    TIMESTAMP_END,
)

#: An integer as a cell's value: type byte and payload.
_INTEGER_VALUE = struct.Struct("<Bq")
_TIMESTAMP_TAG, _DATA_SECTION, _ROW_CHECKSUM = (bytes((tag,)) for tag in (CELL_TIMESTAMP, ROW_DATA, ROW_CHECKSUM))
_ZERO_STEP = bytes(crc8(bytes(8), start) for start in range(256))


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
        base = crc8(I64.pack(timestamp_ms))
        self.checksums = bytes(base ^ step for step in _ZERO_STEP)
        self.endings = [
            _TIMESTAMP_TAG + TIMESTAMP_END.pack(timestamp_ms, CELL_CHECKSUM, each) for each in self.checksums
        ]

    def cell(self, name: bytes, raw: bytes, checksum: int, value: bytes) -> Cell:
        """Return the stamped cell; `raw` must be a put without version."""
        return Cell(
            name, self.timestamp_ms, raw[:-CHECKSUM_BYTES] + self.endings[checksum], self.checksums[checksum], value
        )


@lru_cache(maxsize=4)
def stamp_at(timestamp_ms: int) -> Stamp:
    """Return the stamp of one millisecond; the rows of a batch share it."""
    return Stamp(timestamp_ms)


def make_cell(name: bytes, value: bytes, timestamp_ms: int) -> Cell:
    """Build a put cell from its value (type byte and payload)."""
    checksum = crc8(I64.pack(timestamp_ms), crc8(value, crc8(name)))
    parts = (
        CELL_START.pack(CELL, CELL_NAME, len(name)),
        name,
        TAG_LENGTH.pack(CELL_VALUE, len(value)),
        value,
        _TIMESTAMP_TAG,
        TIMESTAMP_END.pack(timestamp_ms, CELL_CHECKSUM, checksum),
    )
    return Cell(name, timestamp_ms, b"".join(parts), checksum, value)


def integer_value(value: int) -> bytes:
    """Encode an integer as type byte and payload."""
    return _INTEGER_VALUE.pack(INTEGER, value)


def integer_of(value: bytes) -> int | None:
    """Decode type byte and payload; None when the value is not an integer."""
    return int(_INTEGER_VALUE.unpack_from(value)[1]) if value[0] == INTEGER else None


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
    end = TAG_BYTES
    for _ in range(columns):
        value_at = end + CELL_START_BYTES + CELL_START.unpack_from(image, end)[2]
        end = value_at + TAG_LENGTH_BYTES + TAG_LENGTH.unpack_from(image, value_at)[1] + CHECKSUM_BYTES
    return image[TAG_BYTES:end]


def key_image(span: RowSpan) -> bytes:
    """Build the row that holds only the key."""
    return join_row(span.key, span.key_checksums, (), header=False)


def row_without_key(cells: Iterable[Cell]) -> bytes:
    """Build a row with header that has cells and no key, not even its tag; cells must be in order."""
    parts = [HEADER, _DATA_SECTION]
    checksums = bytearray()
    for cell in cells:
        parts.append(cell.raw)
        checksums.append(cell.checksum)
    return b"".join((*parts, _ROW_CHECKSUM, bytes((crc8(bytes(checksums) + b"\0"),))))


def origin_of(image: bytes, names: Sequence[str]) -> bytes:
    """Build a row with header from the key and the newest cells of some columns; empty without any.

    With the key, because the vendor's Java SDK refuses an empty one in records of a table's stream; in those of a
    tunnel all clients take both.
    """
    span = scan_image(image)
    wanted = {name.encode() for name in names}
    cells = newest((cell for cell in cells_of(span) if cell.name in wanted), 1)
    return HEADER + build_image(span, cells) if cells else b""


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
