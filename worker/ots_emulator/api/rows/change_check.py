"""Checks of a row change that need no table; pure (docs/data-plane.md 2.2, 2.3, 2.5).

Each of them refuses the whole request, also for one row of a batch.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from functools import lru_cache
from typing import Final

from ots_emulator.refusal import RequestRefusal, request_invalid
from ots_emulator.tables.sent_keys import (
    KEY_COLUMNS,
    check_column_count,
    check_key_values,
    is_text,
    key_columns,
    scan_sent_row,
)
from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp
from ots_tunnel.protocol.plainbuffer.spans import EMPTY_SECTION, CellSpan, RowSpan

_U32 = struct.Struct("<I")
_F64 = struct.Struct("<d")
_I63_MAX: Final = (1 << 63) - 1
TIMESTAMP_LIMIT_MS: Final = _I63_MAX // 1000
#: Limits of docs/data-plane.md 2.2.
NAME_BYTES: Final = 255
VALUE_BYTES: Final = 2_097_152
COLUMNS_PER_ROW: Final = 1024

#: Bytes of a value by type byte, for types with no other check than the length: integer.
_FIXED_BYTES = {0x00: 9}


def read_change(buffer: bytes, action: Action) -> tuple[bytes, RowSpan]:
    """Parse a row change and check it; return the row, without what follows it, and its parts.

    Raises:
        RequestRefusal: malformed, or wrong whatever the table looks like.
    """
    row, span = _scan(buffer)
    if not 1 <= len(span.key_checksums) <= KEY_COLUMNS:
        check_column_count(len(span.key_checksums))
    if action is Action.DELETE:
        if not span.delete_marker:
            raise request_invalid("Invalid request of delete row: missing RowDeleteMarker in request.")
        if span.cells:
            raise request_invalid("Invalid delete row request: unexpected cells in request.")
    elif span.delete_marker:
        raise request_invalid("Invalid request of put/update row: unexpected RowDeleteMarker in request.")
    elif action is Action.UPDATE and not span.cells:
        raise request_invalid("Attribute column is missing.")
    if len(span.cells) > COLUMNS_PER_ROW:
        raise request_invalid(
            f"The number of attribute columns exceeds the limit, limit count: {COLUMNS_PER_ROW}, "
            f"column count: {len(span.cells)}."
        )
    _check_cells(span, action)
    if action is Action.UPDATE:
        _check_increments(span)
    return row, span


def _scan(buffer: bytes) -> tuple[bytes, RowSpan]:
    try:
        return scan_sent_row(buffer)
    except CodecError as error:
        if "checksum is" in str(error):
            raise request_invalid(f"Cell data broken, checksum is mismatch: {error}.") from error
        if error.args[0] == EMPTY_SECTION:
            raise request_invalid("Cell data broken, no Cells follow CellTag.") from error
        raise request_invalid(f"Malformed PlainBuffer row: {error}.") from error


def check_row_key(span: RowSpan) -> None:
    """Refuse a key that no table can have; needed only if no table checks the key.

    Raises:
        RequestRefusal: a marker or an over-long value.
    """
    check_key_values(key_columns(span.key))


def _check_cells(span: RowSpan, action: Action) -> None:
    # Runs for every cell of a load, so common cells cause no function call.
    cells = span.cells
    _check_names(tuple([cell.name for cell in cells]))
    fixed_bytes = _FIXED_BYTES
    for cell in cells:
        name, op, timestamp_ms, _, _, value = cell
        if op or value is None:
            _check_op(cell, action)
        if value is not None and (not value or fixed_bytes.get(value[0]) != len(value)):
            _check_value(name, value)
        if timestamp_ms is not None and not 0 <= timestamp_ms < TIMESTAMP_LIMIT_MS:
            raise request_invalid("Timestamp must be in range [0, INT64_MAX/1000).")


# The rows of a table have few different lists of columns.
@lru_cache(maxsize=128)
def _check_names(names: tuple[bytes, ...]) -> None:
    for name in names:
        check_name(name)


def check_name(name: bytes) -> None:
    """Refuse an invalid column name.

    Raises:
        RequestRefusal: it is too long, begins with ``#`` or is not UTF-8.
    """
    if not 1 <= len(name) <= NAME_BYTES or name.startswith(b"#"):
        raise request_invalid(f"Invalid column name: '{name.decode(errors='replace')}'.")
    try:
        name.decode()
    except UnicodeDecodeError as error:
        raise request_invalid(f"Invalid column name: '{name.decode(errors='replace')}'.") from error


def _check_op(cell: CellSpan, action: Action) -> None:
    name, op, timestamp_ms, _, _, value = cell
    if op and action is Action.PUT:
        raise request_invalid(f"OpType cannot be given for column name:{name.decode()} in PutRow.")
    match op:
        case CellOp.DELETE_ALL_VERSIONS | CellOp.DELETE_ONE_VERSION if value is not None:
            raise request_invalid("Column value cannot be given when type is DELETE_ONE_VERSION,DELETE_ALL_VERSION.")
        case CellOp.DELETE_ONE_VERSION if timestamp_ms is None:
            raise request_invalid("Timestamp must be given when type is DELETE_ONE_VERSION.")
        case CellOp.DELETE_ALL_VERSIONS if timestamp_ms is not None:
            raise request_invalid("Timestamp cannot be given when type is DELETE_ALL_VERSION.")
        case CellOp.INCREMENT if value is None or value[:1] != b"\0":
            raise request_invalid(f"The value of column '{name.decode()}' must be an integer when type is INCREMENT.")
        case CellOp.INCREMENT if timestamp_ms is not None:
            raise request_invalid("Timestamp cannot be given when type is INCREMENT.")
        case CellOp.PUT if value is None:
            raise request_invalid(f"The value of column '{name.decode()}' is missing.")
        case _:
            return


def _check_value(name: bytes, value: bytes) -> None:
    kind = value[0] if value else 0xFF
    size = len(value) - 5
    if kind == 0x03 and 0 <= size <= VALUE_BYTES and value.isascii() and value[1:5] == _U32.pack(size):
        return
    match kind:
        case 0x01 if len(value) == 9:
            number = _F64.unpack_from(value, 1)[0]
            if math.isnan(number):
                raise request_invalid("NaN can't be set to double value.")
            if math.isinf(number):
                raise request_invalid("Infinity can't be set to double value.")
        case 0x02 if len(value) == 2 and value[1] < 2:
            return
        case 0x03 if not value.isascii() and not is_text(value[5:]):
            raise request_invalid(f"Value of column '{name.decode()}' must be UTF8 encoding.")
        case 0x03 | 0x07 if len(value) >= 5 and _U32.unpack_from(value, 1)[0] == len(value) - 5:
            if len(value) - 5 > VALUE_BYTES:
                raise value_too_long(name.decode(), len(value) - 5)
        case _:
            raise request_invalid(f"The value of column '{name.decode()}' has an invalid type or length.")


def value_too_long(name: str, size: int) -> RequestRefusal:
    """Build the refusal of a text or binary value of a column that has too many bytes."""
    return request_invalid(
        f"The length of attribute column: '{name}' exceeds the MaxLength:{VALUE_BYTES} with CurrentLength:{size}."
    )


def _check_increments(span: RowSpan) -> None:
    if not any(cell.op == CellOp.INCREMENT for cell in span.cells):
        return
    counts = Counter(cell.name for cell in span.cells)
    for cell in span.cells:
        if cell.op == CellOp.INCREMENT and counts[cell.name] > 1:
            raise request_invalid(f"Duplicated attribute column name: '{cell.name.decode()}' while updating row.")
