"""Rows for the emulator's loads: 200 bytes of PlainBuffer without header, or the demo's flights."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

from ots_tunnel.demo.flights import find_flights, read_flights
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column

ROW_BYTES = 200
REQUEST_ROWS = 200
_IGNORE = pb.Condition(row_existence=pb.IGNORE)


def row_of(number: int, *, version_ms: int | None = None) -> bytes:
    """A row to put with two key columns and four attributes; with versions it is what the emulator stores."""
    # Scattered keys: rows written one after the other are not neighbours in the table.
    key = (("device", f"{number * 2654435761 % (1 << 32):010d}"), ("n", number))
    note = "" if version_ms is not None else "x" * 36
    values = (("amount", number * 0.5), ("count", number), ("note", note), ("state", "new"))
    row = encode_row(key, tuple(Column(name, value, version_ms) for name, value in values))
    assert len(row) - 4 == ROW_BYTES, len(row) - 4
    return row


def write_requests(table: str, rows: Iterator[bytes]) -> Iterator[bytes]:
    """Bodies of BatchWriteRow that put rows."""
    while batch := [
        pb.RowInBatchWriteRowRequest(type=pb.PUT, row_change=row, condition=_IGNORE)
        for row in islice(rows, REQUEST_ROWS)
    ]:
        tables = [pb.TableInBatchWriteRowRequest(table_name=table, rows=batch)]
        yield pb.BatchWriteRowRequest(tables=tables).SerializeToString()


def flights(rows: int) -> Iterator[bytes]:
    """Rows of the demo, all cells with a version."""
    for write in read_flights(find_flights(), int(time.time() * 1000), rows=rows):
        yield encode_row(write.primary_key, write.columns)
