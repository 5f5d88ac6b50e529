"""Sizes of rows and capacity units of calls, as the service counts them; pure (docs/data-plane.md 2.2).

A read costs the size of the rows it returns, so one that selects nothing of many rows costs one unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from ots_emulator.tables.cells import scan_image
from ots_emulator.tables.options import TableOptions
from ots_emulator.tables.row_size import VERSION_BYTES, data_bytes
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.spans import RowSpan

#: Bytes of one capacity unit.
UNIT_BYTES: Final = 4096
#: Rows of a page that are counted in detail, at most.
SAMPLES: Final = 16


def version_bytes(options: TableOptions) -> int:
    """Return what the version of a cell counts: nothing in a table that keeps one version without end."""
    return 0 if options.max_versions == 1 and options.time_to_live < 0 else VERSION_BYTES


def read_bytes(rows: Sequence[bytes], version: int) -> int:
    """Return the size of rows that were read.

    What a row has on the wire beside names and values depends on its columns and not on their texts. So some of the
    rows tell it for all: the size is exact where rows have the same columns, or are few.

    Args:
        rows: as they are sent; what they have on the wire is an upper bound.
        version: bytes of a cell's version.
    """
    wire_bytes = sum(map(len, rows))
    if wire_bytes <= UNIT_BYTES:
        return wire_bytes
    samples = rows[:: -(-len(rows) // SAMPLES)]
    beside = sum(len(row) - data_bytes(scan_image(row), version) for row in samples)
    return wire_bytes - beside * len(rows) // len(samples)


def write_units(span: RowSpan, wire_bytes: int, version: int) -> int:
    """Return the cost of a write; a row of at most one unit on the wire is not counted in detail."""
    return 1 if wire_bytes <= UNIT_BYTES else capacity_units(data_bytes(span, version))


def capacity_units(size_bytes: int) -> int:
    """Return the capacity units of a number of bytes."""
    return max(1, -(-size_bytes // UNIT_BYTES))


@lru_cache(maxsize=64)
def consumed(read: int, write: int) -> pb.ConsumedCapacity:
    """Return the message of a cost; shared, so callers must not change it."""
    return pb.ConsumedCapacity(capacity_unit=pb.CapacityUnit(read=read, write=write))
