"""Size of a row as the service counts it: names, values and versions, without what carries them; pure.

Source: docs/data-plane.md 2.2.
"""

from __future__ import annotations

from typing import Final

from ots_emulator.tables.sent_keys import key_columns
from ots_tunnel.model import KeyValue
from ots_tunnel.protocol.plainbuffer.spans import RowSpan

#: Bytes of a cell's version, in tables that keep several of them or for a limited time.
VERSION_BYTES: Final = 8
#: Bytes of a value by its type byte: integer, double, boolean; other types count their payload.
_DATA_BYTES: Final = {0x00: 8, 0x01: 8, 0x02: 1}


def data_bytes(span: RowSpan, version: int = VERSION_BYTES) -> int:
    """Return the size of a row: names, values, and `version` bytes for each version."""
    key = sum(len(name.encode()) + _key_bytes(value) for name, value in key_columns(span.key))
    return key + sum(len(cell.name) + _value_bytes(cell.value) + version for cell in span.cells)


def _key_bytes(value: KeyValue) -> int:
    if isinstance(value, str):
        return len(value.encode())
    return len(value) if isinstance(value, bytes) else 8


def _value_bytes(value: bytes | None) -> int:
    return 0 if value is None else _DATA_BYTES.get(value[0], len(value) - 5)
