"""Rows that an increment returns: they have cells and no key, so no codec of rows reads them."""

from __future__ import annotations

from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.plainbuffer.spans import scan_row
from ots_tunnel.protocol.plainbuffer.tags import CHECKSUM_BYTES, HEADER, HEADER_BYTES, ROW_DATA
from ots_tunnel.protocol.plainbuffer.values import decode_value


def returned_cells(row: bytes) -> list[tuple[str, object, int | None]]:
    """Names, values and versions of the cells; form and checksum are asserted."""
    assert row[: HEADER_BYTES + 1] == HEADER + bytes((ROW_DATA,)), "neither a key nor its tag"
    some_key = encode_primary_key((("k", 1),))[:-CHECKSUM_BYTES]
    cells = scan_row(some_key + row[HEADER_BYTES:]).cells
    assert row[-1] == crc8(bytes([*(cell.checksum for cell in cells), 0]))
    return [(cell.name.decode(), decode_value(cell.value or b""), cell.timestamp_ms) for cell in cells]
