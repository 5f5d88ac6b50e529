"""Rows of a range as a matrix: columns are named once, and rows hold their newest values without versions; pure.

    matrix := version32 data_at32 options_at32 keys32 attributes32   53 52 4D 30 is the version
              name*             len16 text: key columns, then attributes
              0A whole_key8     whether every key column is among the names
              03 rows32
              row*              02 value*, one value for each name
              01 crc8           over everything before it
    value  := type8 payload     as in PlainBuffer; type 06 without payload is a column that the row does not have

All integers are little-endian, places count from the start.

Source: the readers of the vendor's Go and Java SDKs.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ots_emulator.tables.cells import scan_image
from ots_emulator.tables.keys import KeySchema
from ots_emulator.tables.sent_keys import key_columns
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.plainbuffer.values import encode_value

_VERSION: Final = 0x304D5253
_HEAD = struct.Struct("<5i")
_NAME = struct.Struct("<h")
_OPTIONS = struct.Struct("<B?Bi")
_ENTIRE_KEY, _ROW_COUNT, _ROW, _CHECKSUM = 10, 3, b"\x02", b"\x01"
_MISSING: Final = b"\x06"


def matrix_of(images: Sequence[bytes], schema: KeySchema, columns: Sequence[str], *, whole_key: bool) -> bytes:
    """Return rows as a matrix.

    Args:
        images: selected rows, as they are stored.
        schema: of their table.
        columns: the requested columns, in the order of the answer.
        whole_key: whether key columns that were not requested are returned as well.
    """
    keys = [column.name for column in schema.columns if whole_key or column.name in columns]
    attributes = [name for name in dict.fromkeys(columns) if name.encode() not in schema.names]
    names = [name.encode() for name in (*keys, *attributes)]
    named = b"".join(_NAME.pack(len(name)) + name for name in names)
    options_at = _HEAD.size + len(named)
    data_at = options_at + _OPTIONS.size
    block = b"".join(
        (
            _HEAD.pack(_VERSION, data_at, options_at, len(keys), len(attributes)),
            named,
            _OPTIONS.pack(_ENTIRE_KEY, len(keys) == len(schema.columns), _ROW_COUNT, len(images)),
            *(_row(image, names) for image in images),
            _CHECKSUM,
        )
    )
    return block + bytes((crc8(block),))


def _row(image: bytes, names: Sequence[bytes]) -> bytes:
    span = scan_image(image)
    values = {name.encode(): encode_value(value) for name, value in key_columns(span.key)}
    for cell in span.cells:
        # The newest version comes first.
        values.setdefault(cell.name, cell.value or _MISSING)
    return _ROW + b"".join(values.get(name, _MISSING) for name in names)
