"""Rows built from raw cells, as `RowSpan` and `CellSpan` hold them, without decoding any."""

from __future__ import annotations

from collections.abc import Iterable

from ots_tunnel.model import SequenceInfo
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.plainbuffer.sequence import encode_sequence
from ots_tunnel.protocol.plainbuffer.spans import COVERED_OP, CellSpan
from ots_tunnel.protocol.plainbuffer.tags import (
    CELL,
    CELL_CHECKSUM,
    CELL_NAME,
    CELL_START,
    CELL_START_BYTES,
    CHECKSUM_BYTES,
    DELETE_MARKER,
    HEADER,
    I64,
    ROW_CHECKSUM,
    ROW_DATA,
    ROW_KEY,
)

_ROW_KEY = bytes((ROW_KEY,))
_ROW_DATA = bytes((ROW_DATA,))
_DELETE_MARKER = bytes((DELETE_MARKER,))


def join_row(
    key: bytes,
    key_checksums: bytes,
    cells: Iterable[tuple[bytes, int]],
    *,
    delete: bool = False,
    sequence: SequenceInfo | None = None,
    header: bool = True,
) -> bytes:
    """Build a row from its raw cells.

    Args:
        key: wire bytes of the key cells.
        key_checksums: one byte per key cell.
        cells: (raw, checksum) of each attribute cell.
        delete: whether the row carries the delete marker.
        sequence: position of a stream record.
        header: whether the result starts with the header.
    """
    parts = [HEADER, _ROW_KEY, key] if header else [_ROW_KEY, key]
    checksums = bytearray(key_checksums)
    section = len(parts)
    for raw, checksum in cells:
        parts.append(raw)
        checksums.append(checksum)
    if len(parts) > section:
        parts.insert(section, _ROW_DATA)
    if delete:
        parts.append(_DELETE_MARKER)
    if sequence is not None:
        parts.append(encode_sequence(sequence))
    checksums.append(1 if delete else 0)
    parts.append(bytes((ROW_CHECKSUM, crc8(bytes(checksums)))))
    return b"".join(parts)


def rename_cell(cell: CellSpan, name: bytes) -> tuple[bytes, int]:
    """The same cell under another name: its raw bytes and its checksum."""
    rest = cell.raw[CELL_START_BYTES + len(cell.name) : -CHECKSUM_BYTES]
    stamp = b"" if cell.timestamp_ms is None else rest[-I64.size :]
    checksum = crc8(name + (cell.value or b"") + stamp + COVERED_OP[cell.op])
    return CELL_START.pack(CELL, CELL_NAME, len(name)) + name + rest + bytes((CELL_CHECKSUM, checksum)), checksum
