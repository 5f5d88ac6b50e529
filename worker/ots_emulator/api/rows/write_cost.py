"""Size limit and cost of writes (docs/data-plane.md 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ots_emulator.api.rows.capacity import consumed, write_units
from ots_emulator.api.rows.row_write import RowWrite
from ots_emulator.refusal import request_invalid
from ots_emulator.tables.row_size import data_bytes
from ots_tunnel.protocol import table_pb2 as pb

#: Bytes of rows in one request (docs/data-plane.md 2.2).
REQUEST_BYTES: Final = 4_194_304


def check_size(operation: str, writes: Sequence[RowWrite]) -> None:
    """Refuse a request with too much data.

    Raises:
        RequestRefusal: it has more than `REQUEST_BYTES`.
    """
    if sum([len(write.row) for write in writes]) <= REQUEST_BYTES:
        return
    size = sum(data_bytes(write.span) for write in writes)
    if size > REQUEST_BYTES:
        raise request_invalid(
            f"The total data size of {operation} request exceeds the limit, limit size: {REQUEST_BYTES}, "
            f"data size: {size}."
        )


def write_cost(write: RowWrite, version: int) -> pb.ConsumedCapacity:
    """Return the cost of a write, `version` bytes for each cell's version; shared, so callers must not change it."""
    return consumed(write.read_units, write_units(write.span, len(write.row), version))
