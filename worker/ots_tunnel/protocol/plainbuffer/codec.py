"""Rows of PlainBuffer, encoded from and decoded into Python values.

Theory of operation
-------------------
Parts. `tags` holds the grammar and the sizes. `values` encodes and decodes single values. `spans` finds the cells of a
row and verifies checksums without decoding a value; `offsets` walks lengths only; `building` joins raw cells into a
row; `sequence` reads the extension of stream records. This module combines them for callers that need values: keys,
conditions, the emulator's requests, the commands. The worker's data path stays below it and passes bytes through.

Encoding. Each cell becomes its bytes and its checksum byte; the row is the header, the key cells, the attribute cells,
the marks and a checksum over the checksum bytes. Encoding refuses what does not fit the wire: integers beyond 64 bits,
text with a lone surrogate. It does not judge meaning: a put without a value is encoded, and the service refuses it.

Decoding runs in two steps. The scanner splits the row into spans and compares the checksums; then names and values are
decoded. A caller thus never gets a value whose checksum was not compared, unless it asked for that. Whatever the bytes
are, decoding returns a row or raises `CodecError` with the offset of the first byte that does not fit.

Where the compiled twin exists, it takes over `scan_row` and `Record`. It decides only about well-formed rows and hands
every other row to the Python code, so that there is one set of rules and one set of errors (see `_native.pyx`).

Numbers: 4,096 column names are cached in each direction (own choice: more names than a table's rows usually have; it
saves the decoding and the memory of equal strings).

Example: the row {key id = 7, no cells}, with its header:

    75 00 00 00                                   header
    01                                            key section
      03  04 02 00 00 00 69 64                    cell, name of 2 bytes: "id"
          05 09 00 00 00  00 07 00 00 00 00 00 00 00   value of 9 bytes: integer, 7
          0A 60                               checksum of "id" and of the 9 bytes
    09 F5                                     checksum of 60 and of 00, since there is no delete marker
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ots_tunnel.errors import CodecError
from ots_tunnel.model import CellOp, KeyValue, PrimaryKey, SequenceInfo, Value
from ots_tunnel.protocol.plainbuffer.building import join_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.plainbuffer.spans import RowSpan, check_header, scan_row
from ots_tunnel.protocol.plainbuffer.tags import (
    CELL,
    CELL_CHECKSUM,
    CELL_NAME,
    CELL_OP,
    CELL_START,
    CELL_START_BYTES,
    CELL_TIMESTAMP,
    CELL_VALUE,
    CHECKSUM_BYTES,
    I64,
    TAG_LENGTH,
    TAG_LENGTH_BYTES,
    U32,
)
from ots_tunnel.protocol.plainbuffer.values import (
    decode_column_value_at,
    decode_key_value_at,
    decode_value,
    encode_value,
)

__all__ = [
    "DecodedRow",
    "decode_key_cells",
    "decode_primary_key",
    "decode_row",
    "decode_rows",
    "decode_value",
    "encode_primary_key",
    "encode_row",
    "encode_value",
]

_VALUE = bytes((CELL_VALUE,))
_TIMESTAMP = bytes((CELL_TIMESTAMP,))
_CHECKSUM = bytes((CELL_CHECKSUM,))
#: Wire bytes of a cell's op with tag, and the byte the checksum covers.
_OPS = {op: (b"", b"") if op is CellOp.PUT else (bytes((CELL_OP, op)), bytes((op,))) for op in CellOp}
_OP_BY_NUMBER = {int(op): op for op in CellOp}


@dataclass(frozen=True, slots=True)
class DecodedRow:
    """One row: its key, its cells in wire order, and what marks it."""

    primary_key: PrimaryKey
    columns: tuple[Column, ...]
    delete_marker: bool
    sequence: SequenceInfo | None


def encode_row(
    primary_key: PrimaryKey,
    columns: Iterable[Column] = (),
    *,
    delete: bool = False,
    sequence: SequenceInfo | None = None,
    header: bool = True,
) -> bytes:
    """Encode one row.

    Args:
        primary_key: key columns in the table's order.
        columns: cells in the order they are written.
        delete: whether the row carries the delete marker.
        sequence: position of a stream record; None for writes.
        header: whether the result starts with the header.

    Raises:
        CodecError: a value or name does not fit the wire.
    """
    key = [_encode_cell(name, value, None, CellOp.PUT) for name, value in primary_key]
    cells = [_encode_cell(column.name, column.value, column.timestamp_ms, column.op) for column in columns]
    return join_row(
        b"".join([raw for raw, _ in key]),
        bytes([checksum for _, checksum in key]),
        cells,
        delete=delete,
        sequence=sequence,
        header=header,
    )


def encode_primary_key(primary_key: PrimaryKey) -> bytes:
    """Encode a row with a key only: a range bound, a split point, or the key of a read."""
    return encode_row(primary_key)


def _encode_cell(name: str, value: Value | KeyValue | None, timestamp_ms: int | None, op: CellOp) -> tuple[bytes, int]:
    prefix, raw_name = _encode_name(name)
    tagged_op, raw_op = _OPS[op]
    if value is None:
        payload = tagged_value = b""
    else:
        payload = encode_value(value)
        tagged_value = _VALUE + U32.pack(len(payload)) + payload
    if timestamp_ms is None:
        timestamp = tagged_timestamp = b""
    else:
        timestamp = _encode_timestamp(timestamp_ms)
        tagged_timestamp = _TIMESTAMP + timestamp
    checksum = crc8(raw_name + payload + timestamp + raw_op)
    return prefix + tagged_value + tagged_op + tagged_timestamp + _CHECKSUM + bytes((checksum,)), checksum


def _encode_timestamp(timestamp_ms: int) -> bytes:
    try:
        return I64.pack(timestamp_ms)
    except struct.error as error:
        raise CodecError(f"timestamp {timestamp_ms!r} is not a 64-bit integer of milliseconds") from error


# Names repeat in every row; sharing them also saves memory.
@lru_cache(maxsize=4096)
def _encode_name(name: str) -> tuple[bytes, bytes]:
    try:
        raw = name.encode()
    except UnicodeEncodeError as error:
        raise CodecError("a column name holds a lone surrogate, which UTF-8 cannot express") from error
    return CELL_START.pack(CELL, CELL_NAME, len(raw)) + raw, raw


@lru_cache(maxsize=4096)
def _decode_name(raw: bytes) -> str:
    try:
        return str(raw, "utf-8")
    except UnicodeDecodeError as error:
        raise CodecError("a column name is not UTF-8") from error


def decode_row(buf: bytes, *, verify: bool = True) -> DecodedRow:
    """Decode a buffer that holds exactly one row.

    Raises:
        CodecError: no header, no row, more than one, or a checksum is wrong.
    """
    buf = bytes(buf)
    span = scan_row(buf, check_header(buf), verify=verify)
    if span.end != len(buf):
        raise CodecError("expected one row, found bytes after it", span.end)
    return _decode_span(span)


def decode_rows(buf: bytes, *, verify: bool = True) -> list[DecodedRow]:
    """Decode a buffer of one header and any number of rows; empty bytes have no rows.

    Raises:
        CodecError: no header, malformed rows, or a checksum is wrong.
    """
    if not buf:
        return []
    buf = bytes(buf)
    pos = check_header(buf)
    rows = []
    while pos < len(buf):
        span = scan_row(buf, pos, verify=verify)
        rows.append(_decode_span(span))
        pos = span.end
    return rows


def decode_primary_key(buf: bytes) -> PrimaryKey:
    """Decode a buffer whose row has a key only.

    Raises:
        CodecError: as `decode_row`, or the row has attributes or marks.
    """
    row = decode_row(buf)
    if row.columns or row.delete_marker or row.sequence is not None:
        raise CodecError("expected a row of primary key columns only")
    return row.primary_key


def _decode_span(span: RowSpan) -> DecodedRow:
    columns = tuple(
        [
            Column(
                _decode_name(name),
                None if value is None else decode_column_value_at(value, 0, len(value)),
                timestamp_ms,
                _OP_BY_NUMBER[op],
            )
            for name, op, timestamp_ms, _, _, value in span.cells
        ]
    )
    return DecodedRow(decode_key_cells(span.key), columns, span.delete_marker, span.sequence)


def decode_key_cells(key: bytes) -> PrimaryKey:
    """Decode the key cells of a row, as `RowSpan.key` and `Record.key` hold them.

    Raises:
        CodecError: the bytes are not key cells.
    """
    columns = []
    pos = 0
    try:
        while pos < len(key):
            cell_tag, name_tag, length = CELL_START.unpack_from(key, pos)
            name_at = pos + CELL_START_BYTES
            value_tag_at = name_at + length
            name = _decode_name(key[name_at:value_tag_at])
            value_tag, value_length = TAG_LENGTH.unpack_from(key, value_tag_at)
            value_at = value_tag_at + TAG_LENGTH_BYTES
            end = value_at + value_length
            if (cell_tag, name_tag, value_tag) != (CELL, CELL_NAME, CELL_VALUE):
                raise CodecError("a primary key cell is name, value and checksum", pos)
            columns.append((name, decode_key_value_at(key, value_at, end)))
            pos = end + CHECKSUM_BYTES
    except struct.error:
        raise CodecError("primary key is truncated", len(key)) from None
    if pos != len(key):
        raise CodecError("primary key is truncated", len(key))
    return tuple(columns)
