"""Sizes of rows and capacity units of calls, as the service counts them; pure (docs/data-plane.md 2.2).

A read costs the size of the returned rows, plus the stored size of rows that a filter left out: a guess from the
vendor's documentation, which charges what was read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ots_emulator.tables.cells import scan_image
from ots_emulator.tables.keys import key_columns
from ots_tunnel.model import KeyValue
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.spans import RowSpan

#: Bytes of one capacity unit.
UNIT_BYTES: Final = 4096
#: Bytes of a value by its type byte: integer, double, boolean; other types count their payload.
_DATA_BYTES: Final = {0x00: 8, 0x01: 8, 0x02: 1}


def data_bytes(span: RowSpan) -> int:
    """Return the size of a row: names, values, and eight bytes for each version."""
    key = sum(len(name.encode()) + _key_bytes(value) for name, value in key_columns(span.key))
    return key + sum(len(cell.name) + _value_bytes(cell.value) + 8 for cell in span.cells)


def read_bytes(wire_bytes: int, sample: bytes) -> int:
    """Return the size of rows that were read.

    Args:
        wire_bytes: their size on the wire, which is an upper bound.
        sample: one of the rows; the size of all is estimated from it.
    """
    if wire_bytes <= UNIT_BYTES:
        return wire_bytes
    return wire_bytes * data_bytes(scan_image(sample)) // len(sample)


def write_units(span: RowSpan, wire_bytes: int) -> int:
    """Return the cost of a write; a row of at most one unit on the wire is not counted in detail."""
    return 1 if wire_bytes <= UNIT_BYTES else capacity_units(data_bytes(span))


def capacity_units(size_bytes: int) -> int:
    """Return the capacity units of a number of bytes."""
    return max(1, -(-size_bytes // UNIT_BYTES))


@lru_cache(maxsize=64)
def consumed(read: int, write: int) -> pb.ConsumedCapacity:
    """Return the message of a cost; shared, so callers must not change it."""
    return pb.ConsumedCapacity(capacity_unit=pb.CapacityUnit(read=read, write=write))


def _key_bytes(value: KeyValue) -> int:
    if isinstance(value, str):
        return len(value.encode())
    return len(value) if isinstance(value, bytes) else 8


def _value_bytes(value: bytes | None) -> int:
    return 0 if value is None else _DATA_BYTES.get(value[0], len(value) - 5)
