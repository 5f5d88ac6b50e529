"""Where the parts of a row begin, found by lengths alone.

For rows that were verified before, or that their reader verifies. No value is decoded. A row that does not follow
`tags` raises `CodecError`.
"""

from __future__ import annotations

import struct

from ots_tunnel.errors import CodecError
from ots_tunnel.model import SequenceInfo
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.plainbuffer.sequence import ends_in_sequence, scan_extension
from ots_tunnel.protocol.plainbuffer.spans import check_header, scan_key_cells
from ots_tunnel.protocol.plainbuffer.tags import (
    CELL,
    CELL_CHECKSUM,
    CELL_OP,
    CELL_START_BYTES,
    CELL_TIMESTAMP,
    CELL_VALUE,
    CHECKSUM_BYTES,
    DELETE_MARKER,
    EXTENSION,
    HEADER,
    HEADER_BYTES,
    OP_BYTES,
    ROW_CHECKSUM,
    ROW_DATA,
    SEQUENCE_TAIL_BYTES,
    TAG_BYTES,
    TAG_LENGTH_BYTES,
    TIMESTAMP_BYTES,
    U32,
)

#: Length of a name from the start of its cell, and of a value from its tag.
_NAME_LENGTH_AT = 2 * TAG_BYTES
_VALUE_LENGTH_AT = TAG_BYTES
_u32 = U32.unpack_from


def skip_cells(buf: bytes, offset: int) -> int:
    """Offset after the last cell of the row at `offset`: of its delete marker, extension or checksum.

    Raises:
        CodecError: the bytes are not a row or end too early.
    """
    try:
        pos = scan_key_cells(buf, offset, False)[0]
        if buf[pos] != ROW_DATA:
            return pos
        pos += TAG_BYTES
        while buf[pos] == CELL:
            pos += CELL_START_BYTES + _u32(buf, pos + _NAME_LENGTH_AT)[0]
            tag = buf[pos]
            if tag == CELL_VALUE:
                pos += TAG_LENGTH_BYTES + _u32(buf, pos + _VALUE_LENGTH_AT)[0]
                tag = buf[pos]
            if tag == CELL_OP:
                pos += OP_BYTES
                tag = buf[pos]
            if tag == CELL_TIMESTAMP:
                pos += TIMESTAMP_BYTES
                tag = buf[pos]
            if tag != CELL_CHECKSUM:
                raise CodecError(f"expected the cell checksum, found tag 0x{tag:02x}", pos)
            pos += CHECKSUM_BYTES
    except (IndexError, struct.error):
        raise CodecError("row is truncated", len(buf)) from None
    return pos


def scan_key(buf: bytes, offset: int = HEADER_BYTES) -> bytes:
    """The wire bytes of the key cells of the row at `offset`.

    Raises:
        CodecError: the bytes are not a row or end too early.
    """
    try:
        return buf[offset + TAG_BYTES : scan_key_cells(buf, offset, False)[0]]
    except (IndexError, struct.error):
        raise CodecError("row is truncated", len(buf)) from None


def read_sequence(buf: bytes) -> SequenceInfo | None:
    """The sequence of a buffer with exactly one row; None if the row has no extension.

    Raises:
        CodecError: the bytes are not a row or end too early.
    """
    if ends_in_sequence(buf):
        return scan_extension(buf, len(buf) - SEQUENCE_TAIL_BYTES)[1]
    return _tail(buf, check_header(buf))[3]


def strip_extension(buf: bytes) -> bytes:
    """The row without its extension, as a write needs it; the row's checksum does not cover the extension.

    Args:
        buf: header and exactly one row.

    Raises:
        CodecError: the bytes are not a row or end too early.
    """
    if ends_in_sequence(buf):
        return buf[:-SEQUENCE_TAIL_BYTES] + buf[-CHECKSUM_BYTES:]
    start, end, row_end, _ = _tail(buf, check_header(buf))
    if row_end != len(buf):
        raise CodecError("expected one row, found bytes after it", row_end)
    return buf if start == end else buf[:start] + buf[end:]


def split_rows(buf: bytes) -> list[bytes]:
    """The rows of a GetRange answer, each without header; empty for empty bytes.

    Raises:
        CodecError: the header is missing, or the bytes are not rows.
    """
    if not buf:
        return []
    pos = check_header(buf)
    rows = []
    while pos < len(buf):
        end = _tail(buf, pos)[2]
        rows.append(buf[pos:end])
        pos = end
    return rows


def rows_of_page(buf: bytes) -> list[bytes]:
    """The rows of a GetRange answer, each with a header; empty for empty bytes.

    Raises:
        CodecError: the header is missing, or the bytes are not rows.
    """
    if buf and native is not None:
        rows: list[bytes] | None = native.rows_of_page(buf, check_header(buf))
        if rows is not None:
            return rows
    return [HEADER + row for row in split_rows(buf)]


def _tail(buf: bytes, offset: int) -> tuple[int, int, int, SequenceInfo | None]:
    """Start and end of the extension, end of the row, and the sequence."""
    pos = skip_cells(buf, offset)
    try:
        if buf[pos] == DELETE_MARKER:
            pos += TAG_BYTES
        start = pos
        sequence = None
        if buf[pos] == EXTENSION:
            pos, sequence = scan_extension(buf, pos)
        if buf[pos] != ROW_CHECKSUM:
            raise CodecError(f"expected the row checksum, found tag 0x{buf[pos]:02x}", pos)
        _ = buf[pos + 1]
    except (IndexError, struct.error):
        raise CodecError("row is truncated", len(buf)) from None
    return start, pos, pos + CHECKSUM_BYTES, sequence
