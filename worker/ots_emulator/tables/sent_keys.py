"""Keys as requests send them, and what no table can have; schemas are unknown here (docs/data-plane.md 2.2, 2.3)."""

from __future__ import annotations

from typing import Final

from ots_emulator.refusal import request_invalid
from ots_tunnel.errors import CodecError
from ots_tunnel.model import Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import decode_key_cells
from ots_tunnel.protocol.plainbuffer.spans import RowSpan, check_header, scan_row

#: Most bytes of a value.
KEY_VALUE_BYTES: Final = 1024
#: Most columns of a key.
KEY_COLUMNS: Final = 4


def key_columns(cells: bytes) -> PrimaryKey:
    """Decode the key cells of a row without a schema.

    Raises:
        RequestRefusal: the bytes are not key cells.
    """
    try:
        return decode_key_cells(cells)
    except CodecError as error:
        raise request_invalid(f"Malformed primary key: {error}.") from error


def read_primary_key(buffer: bytes) -> PrimaryKey:
    """Decode a PlainBuffer row that holds only a key, as reads have it.

    Raises:
        RequestRefusal: it is malformed, holds more than a key, or no table has a row of this key.
    """
    try:
        _, span = scan_sent_row(buffer)
        if span.sequence is not None:
            raise CodecError("expected a row of primary key columns only")
        primary_key = decode_key_cells(span.key)
    except CodecError as error:
        raise request_invalid(f"Malformed primary key: {error}.") from error
    if span.cells:
        raise request_invalid("Attribute column cannot be given while reading data.")
    if span.delete_marker:
        raise request_invalid("Delete marker cannot be given.")
    check_column_count(len(primary_key))
    if any(value is Marker.AUTO_INCREMENT for _, value in primary_key):
        raise request_invalid("PKAutoIncr can't be used for read operations.")
    return primary_key


def scan_sent_row(buffer: bytes) -> tuple[bytes, RowSpan]:
    """Find the row that a client has sent, without the zero bytes that may follow it, and its parts.

    The vendor's Node SDK reserves a byte too many for each value without payload and for each deleted column, and
    sends what it has reserved.

    Raises:
        CodecError: the bytes are not a row, a checksum is wrong, or something else follows.
    """
    span = scan_row(buffer, check_header(buffer), verify=True)
    if span.end != len(buffer) and buffer[span.end :].strip(b"\0"):
        raise CodecError(f"{len(buffer) - span.end} bytes follow the row", span.end)
    return buffer[: span.end], span


def check_column_count(count: int) -> None:
    """Refuse a key with more columns than any table has, or none.

    Raises:
        RequestRefusal: it concerns the request whatever the table is.
    """
    if count == 0:
        raise request_invalid("Cell data broken, empty PK.")
    if not 1 <= count <= KEY_COLUMNS:
        raise request_invalid(f"The number of primary key columns must be in range: [1, {KEY_COLUMNS}].")


def check_key_values(primary_key: PrimaryKey, *, bounds: bool = False, longest: int = KEY_VALUE_BYTES) -> None:
    """Refuse a key that no table can have (docs/data-plane.md 2.3).

    Raises:
        RequestRefusal: a marker where a value belongs, or a value that is too long.
    """
    for name, value in primary_key:
        if isinstance(value, Marker):
            if not bounds or value is Marker.AUTO_INCREMENT:
                raise request_invalid(f"VT_{value.name} is an invalid type for the primary key.")
        elif not isinstance(value, int):
            length = len(value.encode() if isinstance(value, str) else value)
            if length > longest:
                raise request_invalid(
                    f"The length of primary key column: '{name}' exceeds the MaxLength:{longest} "
                    f"with CurrentLength:{length}."
                )


def is_text(value: bytes) -> bool:
    """Whether bytes are UTF-8."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
