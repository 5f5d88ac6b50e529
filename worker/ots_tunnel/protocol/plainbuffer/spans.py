"""Rows as spans of bytes: the cells of a row are found and verified, not decoded.

Theory of operation
-------------------
Parts. A `RowSpan` is one row: the bytes of its key, its cells, its marks. A `CellSpan` is one attribute cell: name,
op, timestamp, value and the whole cell, all as bytes of the buffer. Equal keys have equal key bytes, so that
records are grouped by key, and rows of two tables are compared, without any value.

Scanning follows the grammar of `tags` from left to right with one position:

1. The key section: each cell is name, value and checksum, nothing else.
2. The attribute section, if its tag follows: each cell is name, [value], [op], [timestamp], checksum, in this order.
   A section without cells is refused, because the vendor's encoders omit its tag.
3. The delete marker, the extension, the row's checksum.

Errors. A tag in the wrong place raises `CodecError` at its offset. A length that points past the buffer shows as an
IndexError or a struct.error of the next access; it becomes `CodecError` "row is truncated". No other error leaves this
module, whatever the bytes. With `verify`, each cell's checksum is compared when the cell ends, and the row's at the
end; without it only the structure is checked, for rows that were verified before.

Speed. `scan_row` first asks the compiled twin, which returns None for rows with an extension and for everything that is
not well-formed; then `scan_row_in_python` runs, the reference. Its loop over cells makes no call per part: a call for
each part doubles the time.

Example: the row `01 | 03 04 ... 0A crc | 02 | 03 04 01000000 61 05 02000000 02 01 0A crc | 09 crc` has one key cell and
one attribute cell with name `a`, op 0 (a put), no timestamp and value `02 01`, which is the boolean true.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ots_tunnel.errors import CodecError
from ots_tunnel.model import SequenceInfo
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.plainbuffer.sequence import scan_extension
from ots_tunnel.protocol.plainbuffer.tags import (
    CELL,
    CELL_CHECKSUM,
    CELL_NAME,
    CELL_OP,
    CELL_OPS,
    CELL_START,
    CELL_START_BYTES,
    CELL_TIMESTAMP,
    CELL_VALUE,
    CHECKSUM_BYTES,
    DELETE_MARKER,
    EXTENSION,
    HEADER,
    HEADER_BYTES,
    I64,
    OP_BYTES,
    ROW_CHECKSUM,
    ROW_DATA,
    ROW_KEY,
    TAG_BYTES,
    TAG_LENGTH,
    TAG_LENGTH_BYTES,
    TIMESTAMP_BYTES,
    TIMESTAMP_END,
)

#: The error of an attribute section without cells.
EMPTY_SECTION = "an attribute section holds at least one cell"
#: The bytes that a cell's checksum covers of its op.
COVERED_OP = {0: b""} | {op: bytes((op,)) for op in CELL_OPS}
_cell_start = CELL_START.unpack_from
_tag_length = TAG_LENGTH.unpack_from
_timestamp_end = TIMESTAMP_END.unpack_from
_new_cell = tuple.__new__


class CellSpan(NamedTuple):
    """One attribute cell, undecoded.

    `op` is 0 for a put; `raw` is the whole cell from tag 03 to its checksum byte; `value` is the variant byte and the
    payload.
    """

    name: bytes
    op: int
    timestamp_ms: int | None
    raw: bytes
    checksum: int
    value: bytes | None


class RowSpan(NamedTuple):
    """One row, undecoded.

    `end` is the offset after the row; `key` the wire bytes of all key cells, equal exactly for equal keys;
    `key_checksums` one byte per key cell.
    """

    end: int
    key: bytes
    key_checksums: bytes
    cells: tuple[CellSpan, ...]
    delete_marker: bool
    sequence: SequenceInfo | None


def check_header(buf: bytes) -> int:
    """Offset after the header.

    Raises:
        CodecError: the buffer does not start with 75000000.
    """
    if buf[:HEADER_BYTES] != HEADER:
        raise CodecError(f"buffer begins with {buf[:HEADER_BYTES].hex() or 'nothing'} instead of {HEADER.hex()}", 0)
    return HEADER_BYTES


def scan_row(buf: bytes, offset: int = HEADER_BYTES, *, verify: bool = False) -> RowSpan:
    """Find the parts of the row at `offset`; `verify` compares its checksums.

    Raises:
        CodecError: the bytes are not a row, end too early, or a checksum is wrong.
    """
    if native is not None:
        span: RowSpan | None = native.scan_row(buf, offset, verify)
        if span is not None:
            return span
    return scan_row_in_python(buf, offset, verify=verify)


def scan_whole_row(buf: bytes) -> RowSpan:
    """The parts of a buffer that holds exactly one row, with its checksums compared.

    Raises:
        CodecError: no header, no row, more than one, or a checksum is wrong.
    """
    span = scan_row(buf, check_header(buf), verify=True)
    if span.end != len(buf):
        raise CodecError("expected one row, found bytes after it", span.end)
    return span


def scan_row_in_python(buf: bytes, offset: int = HEADER_BYTES, *, verify: bool = False) -> RowSpan:
    """Reference implementation of `scan_row`."""
    try:
        pos, key_checksums = scan_key_cells(buf, offset, verify)
        key = buf[offset + TAG_BYTES : pos]
        cells: list[CellSpan] = []
        if buf[pos] == ROW_DATA:
            pos = _scan_cells(buf, pos + TAG_BYTES, cells, verify)
        delete_marker = buf[pos] == DELETE_MARKER
        if delete_marker:
            pos += TAG_BYTES
        sequence = None
        if buf[pos] == EXTENSION:
            pos, sequence = scan_extension(buf, pos)
        if buf[pos] != ROW_CHECKSUM:
            raise CodecError(f"expected the row checksum, found tag 0x{buf[pos]:02x}", pos)
        checksum = buf[pos + 1]
    except (IndexError, struct.error):
        raise CodecError("row is truncated", len(buf)) from None
    if verify:
        covered = key_checksums + bytes([cell[4] for cell in cells])
        check_row_checksum(covered, delete_marker, checksum, pos + 1)
    return RowSpan(pos + CHECKSUM_BYTES, key, key_checksums, tuple(cells), delete_marker, sequence)


def check_row_checksum(covered: bytes, delete_marker: bool, checksum: int, offset: int) -> None:
    """Compare a row's checksum with the one computed over its cells' checksum bytes.

    Raises:
        CodecError: they differ.
    """
    actual = crc8(covered + (b"\x01" if delete_marker else b"\x00"))
    if actual != checksum:
        raise CodecError(f"row checksum is 0x{checksum:02x}, computed 0x{actual:02x}", offset)


def scan_key_cells(buf: bytes, offset: int, verify: bool) -> tuple[int, bytes]:
    """Offset after the key section of the row at `offset`, and the checksum of each key cell.

    Raises:
        CodecError: the section is malformed, or a checksum is wrong.
        IndexError, struct.error: the bytes end too early.
    """
    if buf[offset] != ROW_KEY:
        raise CodecError(f"expected the primary key, found tag 0x{buf[offset]:02x}", offset)
    pos = offset + TAG_BYTES
    checksums = []
    while buf[pos] == CELL:
        start = pos
        _, tag, length = _cell_start(buf, pos)
        value_tag_at = pos + CELL_START_BYTES + length
        value_tag, value_length = _tag_length(buf, value_tag_at)
        pos = value_tag_at + TAG_LENGTH_BYTES + value_length
        if tag != CELL_NAME or value_tag != CELL_VALUE or buf[pos] != CELL_CHECKSUM:
            raise CodecError("a primary key cell is name, value and checksum", start)
        checksum = buf[pos + 1]
        checksums.append(checksum)
        if verify:
            name = buf[start + CELL_START_BYTES : value_tag_at]
            check_cell_checksum(name + buf[value_tag_at + TAG_LENGTH_BYTES : pos], checksum, pos + 1)
        pos += CHECKSUM_BYTES
    return pos, bytes(checksums)


# One loop without calls: a call per part would double the time.
def _scan_cells(buf: bytes, pos: int, cells: list[CellSpan], verify: bool) -> int:
    """Append the attribute cells from `pos` on to `cells`; the offset after them."""
    while buf[pos] == CELL:
        start = pos
        _, tag, length = _cell_start(buf, pos)
        if tag != CELL_NAME:
            raise CodecError(f"expected a cell name, found tag 0x{tag:02x}", pos + 1)
        pos += CELL_START_BYTES + length
        name = buf[start + CELL_START_BYTES : pos]
        value = timestamp = None
        op = 0
        tag = buf[pos]
        if tag == CELL_VALUE:
            value_at = pos + TAG_LENGTH_BYTES
            pos = value_at + _tag_length(buf, pos)[1]
            value = buf[value_at:pos]
            tag = buf[pos]
        if tag == CELL_OP:
            op = buf[pos + 1]
            if op not in CELL_OPS:
                raise CodecError(f"unknown cell op {op}", pos + 1)
            pos += OP_BYTES
            tag = buf[pos]
        if tag == CELL_TIMESTAMP:
            timestamp, tag, checksum = _timestamp_end(buf, pos + 1)
            pos += TIMESTAMP_BYTES + CHECKSUM_BYTES
        else:
            checksum = buf[pos + 1]
            pos += CHECKSUM_BYTES
        if tag != CELL_CHECKSUM:
            raise CodecError(f"expected the cell checksum, found tag 0x{tag:02x}", pos - CHECKSUM_BYTES)
        if verify:
            stamp = b"" if timestamp is None else buf[pos - I64.size - CHECKSUM_BYTES : pos - CHECKSUM_BYTES]
            check_cell_checksum(name + (value or b"") + stamp + COVERED_OP[op], checksum, pos - 1)
        cells.append(_new_cell(CellSpan, (name, op, timestamp, buf[start:pos], checksum, value)))
    if not cells:
        raise CodecError(EMPTY_SECTION, pos)
    return pos


def check_cell_checksum(covered: bytes, checksum: int, offset: int) -> None:
    """Compare a cell's checksum with the one computed over its parts.

    Raises:
        CodecError: they differ.
    """
    actual = crc8(covered)
    if actual != checksum:
        raise CodecError(f"cell checksum is 0x{checksum:02x}, computed 0x{actual:02x}", offset)
