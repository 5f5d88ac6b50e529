"""Rows as spans of bytes: cells are found and compared without being decoded.

The hot paths of worker, comparison and emulator run here. A row whose bytes do not follow `tags` raises
`CodecError`; nothing else leaves this module, whatever the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from ots_tunnel.errors import CodecError
from ots_tunnel.model import SequenceInfo
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.plainbuffer.tags import (
    CELL,
    CELL_CHECKSUM,
    CELL_NAME,
    CELL_OP,
    CELL_OPS,
    CELL_START,
    CELL_TIMESTAMP,
    CELL_VALUE,
    DELETE_MARKER,
    EXTENSION,
    HEADER,
    ROW_CHECKSUM,
    ROW_DATA,
    ROW_KEY,
    TAG_LENGTH,
    TIMESTAMP_END,
)
from ots_tunnel.protocol.sequence import encode_sequence, ends_in_sequence, scan_extension

_ROW_KEY = bytes((ROW_KEY,))
_ROW_DATA = bytes((ROW_DATA,))
_DELETE_MARKER = bytes((DELETE_MARKER,))
#: What the checksum covers of a cell's op.
_OP = {0: b""} | {op: bytes((op,)) for op in CELL_OPS}
_cell_start = CELL_START.unpack_from
_tag_length = TAG_LENGTH.unpack_from
_timestamp_end = TIMESTAMP_END.unpack_from
_new_cell = tuple.__new__


class CellSpan(NamedTuple):
    """One attribute cell, undecoded.

    `op` is 0 for a put; `raw` is the whole cell from tag 03 to its checksum byte; `value` is variant byte and
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
        CodecError: the buffer does not begin with 75000000.
    """
    if buf[:4] != HEADER:
        raise CodecError(f"buffer begins with {buf[:4].hex() or 'nothing'} instead of {HEADER.hex()}", 0)
    return 4


def scan_row(buf: bytes, offset: int = 4, *, verify: bool = False) -> RowSpan:
    """Find the parts of the row at `offset`, with its checksums checked if `verify`.

    Raises:
        CodecError: the bytes are no row, end too early, or a checksum is wrong.
    """
    if native is not None:
        span: RowSpan | None = native.scan_row(buf, offset, verify)
        if span is not None:
            return span
    return scan_row_in_python(buf, offset, verify=verify)


def scan_whole_row(buf: bytes) -> RowSpan:
    """The parts of a buffer that holds exactly one row, its checksums checked.

    Raises:
        CodecError: no header, no row, more than one, or a checksum is wrong.
    """
    span = scan_row(buf, check_header(buf), verify=True)
    if span.end != len(buf):
        raise CodecError("expected one row, found bytes after it", span.end)
    return span


def scan_row_in_python(buf: bytes, offset: int = 4, *, verify: bool = False) -> RowSpan:
    """The reference of `scan_row`."""
    try:
        pos, key_checksums = _scan_key(buf, offset, verify)
        key = buf[offset + 1 : pos]
        cells: list[CellSpan] = []
        if buf[pos] == ROW_DATA:
            pos = _scan_cells(buf, pos + 1, cells, verify)
        delete_marker = buf[pos] == DELETE_MARKER
        if delete_marker:
            pos += 1
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
    return RowSpan(pos + 2, key, key_checksums, tuple(cells), delete_marker, sequence)


def check_row_checksum(covered: bytes, delete_marker: bool, checksum: int, offset: int) -> None:
    """Compare a row's checksum with that of its cells' checksum bytes.

    Raises:
        CodecError: they differ.
    """
    actual = crc8(covered + (b"\x01" if delete_marker else b"\x00"))
    if actual != checksum:
        raise CodecError(f"row checksum is 0x{checksum:02x}, computed 0x{actual:02x}", offset)


def _scan_key(buf: bytes, offset: int, verify: bool) -> tuple[int, bytes]:
    """Offset after the key section, and the key cells' checksums."""
    if buf[offset] != ROW_KEY:
        raise CodecError(f"expected the primary key, found tag 0x{buf[offset]:02x}", offset)
    pos = offset + 1
    checksums = []
    while buf[pos] == CELL:
        start = pos
        _, tag, length = _cell_start(buf, pos)
        value_at = pos + 6 + length
        value_tag, value_length = _tag_length(buf, value_at)
        pos = value_at + 5 + value_length
        if tag != CELL_NAME or value_tag != CELL_VALUE or buf[pos] != CELL_CHECKSUM:
            raise CodecError("a primary key cell is name, value and checksum", start)
        checksum = buf[pos + 1]
        checksums.append(checksum)
        if verify:
            check_cell_checksum(buf[start + 6 : value_at] + buf[value_at + 5 : pos], checksum, pos + 1)
        pos += 2
    return pos, bytes(checksums)


# One loop without calls: a call per part would double the time.
def _scan_cells(buf: bytes, pos: int, cells: list[CellSpan], verify: bool) -> int:
    """Append the attribute cells from `pos` on; the offset after them."""
    while buf[pos] == CELL:
        start = pos
        _, tag, length = _cell_start(buf, pos)
        if tag != CELL_NAME:
            raise CodecError(f"expected a cell name, found tag 0x{tag:02x}", pos + 1)
        pos += 6 + length
        name = buf[start + 6 : pos]
        value = timestamp = None
        op = 0
        tag = buf[pos]
        if tag == CELL_VALUE:
            value_at = pos + 5
            pos = value_at + _tag_length(buf, pos)[1]
            value = buf[value_at:pos]
            tag = buf[pos]
        if tag == CELL_OP:
            op = buf[pos + 1]
            if op not in CELL_OPS:
                raise CodecError(f"unknown cell op {op}", pos + 1)
            pos += 2
            tag = buf[pos]
        if tag == CELL_TIMESTAMP:
            timestamp, tag, checksum = _timestamp_end(buf, pos + 1)
            pos += 11
        else:
            checksum = buf[pos + 1]
            pos += 2
        if tag != CELL_CHECKSUM:
            raise CodecError(f"expected the cell checksum, found tag 0x{tag:02x}", pos - 2)
        if verify:
            stamp = b"" if timestamp is None else buf[pos - 10 : pos - 2]
            check_cell_checksum(name + (value or b"") + stamp + _OP[op], checksum, pos - 1)
        cells.append(_new_cell(CellSpan, (name, op, timestamp, buf[start:pos], checksum, value)))
    if not cells:
        raise CodecError("an attribute section holds at least one cell", pos)
    return pos


def rename_cell(cell: CellSpan, name: bytes) -> tuple[bytes, int]:
    """The same cell under another name: its raw bytes and its checksum."""
    rest = cell.raw[6 + len(cell.name) : -2]
    stamp = b"" if cell.timestamp_ms is None else rest[-8:]
    checksum = crc8(name + (cell.value or b"") + stamp + _OP[cell.op])
    return CELL_START.pack(CELL, CELL_NAME, len(name)) + name + rest + bytes((CELL_CHECKSUM, checksum)), checksum


def check_cell_checksum(covered: bytes, checksum: int, offset: int) -> None:
    """Compare a cell's checksum with that of its parts.

    Raises:
        CodecError: they differ.
    """
    actual = crc8(covered)
    if actual != checksum:
        raise CodecError(f"cell checksum is 0x{checksum:02x}, computed 0x{actual:02x}", offset)


def skip_cells(buf: bytes, offset: int) -> int:
    """Offset after the last cell of the row at `offset`: of its delete marker, extension or checksum.

    Walks lengths only; for rows that were scanned before or will be by their reader.

    Raises:
        CodecError: the bytes are no row or end too early.
    """
    try:
        pos = _scan_key(buf, offset, False)[0]
        if buf[pos] != ROW_DATA:
            return pos
        pos += 1
        while buf[pos] == CELL:
            pos += 6 + _cell_start(buf, pos)[2]
            tag = buf[pos]
            if tag == CELL_VALUE:
                pos += 5 + _tag_length(buf, pos)[1]
                tag = buf[pos]
            if tag == CELL_OP:
                pos += 2
                tag = buf[pos]
            if tag == CELL_TIMESTAMP:
                pos += 9
                tag = buf[pos]
            if tag != CELL_CHECKSUM:
                raise CodecError(f"expected the cell checksum, found tag 0x{tag:02x}", pos)
            pos += 2
    except (IndexError, struct.error):
        raise CodecError("row is truncated", len(buf)) from None
    return pos


def scan_key(buf: bytes, offset: int = 4) -> bytes:
    """The wire bytes of the key cells of the row at `offset`.

    Raises:
        CodecError: the bytes are no row or end too early.
    """
    try:
        return buf[offset + 1 : _scan_key(buf, offset, False)[0]]
    except (IndexError, struct.error):
        raise CodecError("row is truncated", len(buf)) from None


def _tail(buf: bytes, offset: int) -> tuple[int, int, int, SequenceInfo | None]:
    """Offsets of the extension's begin and end and of the row's end, and the sequence."""
    pos = skip_cells(buf, offset)
    try:
        if buf[pos] == DELETE_MARKER:
            pos += 1
        start = pos
        sequence = None
        if buf[pos] == EXTENSION:
            pos, sequence = scan_extension(buf, pos)
        if buf[pos] != ROW_CHECKSUM:
            raise CodecError(f"expected the row checksum, found tag 0x{buf[pos]:02x}", pos)
        _ = buf[pos + 1]
    except (IndexError, struct.error):
        raise CodecError("row is truncated", len(buf)) from None
    return start, pos, pos + 2, sequence


def read_sequence(buf: bytes) -> SequenceInfo | None:
    """The sequence of a buffer with exactly one row, None where it has none.

    Raises:
        CodecError: the bytes are no row or end too early.
    """
    if ends_in_sequence(buf):
        return scan_extension(buf, len(buf) - 31)[1]
    return _tail(buf, check_header(buf))[3]


def strip_extension(buf: bytes) -> bytes:
    """The row without its extension: what a write takes; the row checksum stays right.

    Args:
        buf: header and exactly one row.

    Raises:
        CodecError: the bytes are no row or end too early.
    """
    if ends_in_sequence(buf):
        return buf[:-31] + buf[-2:]
    start, end, row_end, _ = _tail(buf, check_header(buf))
    if row_end != len(buf):
        raise CodecError("expected one row, found bytes after it", row_end)
    return buf if start == end else buf[:start] + buf[end:]


def split_rows(buf: bytes) -> list[bytes]:
    """The rows of a GetRange answer, each without header; none for empty bytes.

    Raises:
        CodecError: the header is missing, or the bytes are no rows.
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


def join_row(
    key: bytes,
    key_checksums: bytes,
    cells: Iterable[tuple[bytes, int]],
    *,
    delete: bool = False,
    sequence: SequenceInfo | None = None,
    header: bool = True,
) -> bytes:
    """Build a row from raw cells, as `RowSpan` and `CellSpan` hold them, without decoding any.

    Args:
        key: wire bytes of the key cells.
        key_checksums: one byte per key cell.
        cells: (raw, checksum) of each attribute cell.
        delete: whether the row carries the delete marker.
        sequence: position of a stream record.
        header: whether the buffer's header goes in front.
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
