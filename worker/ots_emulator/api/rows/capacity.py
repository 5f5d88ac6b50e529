"""What rows weigh and what calls cost, as the service counts; pure (docs/data-plane.md 2.2).

Sizes of reads are those of the rows as they are returned, and of what a filter left out as it is stored: a guess from
the vendor's documentation, which charges what was read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ots_emulator.tables.cells import scan_image
from ots_emulator.tables.keys import key_columns
from ots_tunnel.model import KeyValue
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.spans import RowSpan

UNIT_BYTES: Final = 4096
_DATA_BYTES: Final = {0x00: 8, 0x01: 8, 0x02: 1}


def data_bytes(span: RowSpan) -> int:
    """Return the size of a row: names, values, and eight bytes for each version."""
    key = sum(len(name.encode()) + _key_bytes(value) for name, value in key_columns(span.key))
    return key + sum(len(cell.name) + _value_bytes(cell.value) + 8 for cell in span.cells)


def read_bytes(wire_bytes: int, sample: bytes) -> int:
    """Return the size of rows that were read.

    Args:
        wire_bytes: their size on the wire, which is never less.
        sample: one of them; the size of many is estimated from it, of one it is exact.
    """
    if wire_bytes <= UNIT_BYTES:
        return wire_bytes
    return wire_bytes * data_bytes(scan_image(sample)) // len(sample)


def write_units(span: RowSpan, wire_bytes: int) -> int:
    """Return the cost of a write; rows that are small on the wire need no counting."""
    return 1 if wire_bytes <= UNIT_BYTES else capacity_units(data_bytes(span))


def capacity_units(size_bytes: int) -> int:
    """Return what reading or writing this much costs."""
    return max(1, -(-size_bytes // UNIT_BYTES))


@lru_cache(maxsize=64)
def consumed(read: int, write: int) -> pb.ConsumedCapacity:
    """Say what a call has cost; not to be changed."""
    return pb.ConsumedCapacity(capacity_unit=pb.CapacityUnit(read=read, write=write))


def _key_bytes(value: KeyValue) -> int:
    if isinstance(value, str):
        return len(value.encode())
    return len(value) if isinstance(value, bytes) else 8


def _value_bytes(value: bytes | None) -> int:
    return 0 if value is None else _DATA_BYTES.get(value[0], len(value) - 5)
