"""Reads a matrix of rows as a client would."""

from __future__ import annotations

import struct

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Value
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.plainbuffer.values import decode_value

_SIZES = {0: 8, 1: 8, 2: 1, 6: 0}


def read_matrix(block: bytes) -> list[dict[str, Value]]:
    """Every row of a block by column name; a column that the row does not have is left out.

    Raises:
        CodecError: the block is malformed.
    """
    if not block:
        return []
    try:
        return _rows(block)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise CodecError(f"the matrix is malformed: {error}") from error


def _rows(block: bytes) -> list[dict[str, Value]]:
    version, data_at, options_at, keys, attributes = struct.unpack_from("<4s4i", block)
    key_tag, whole, count_tag, count = struct.unpack_from("<BBBi", block, options_at)
    if (version, key_tag, count_tag, block[-2]) != (b"SRM0", 10, 3, 1) or whole > 1 or block[-1] != crc8(block[:-1]):
        raise CodecError("a tag or the checksum of the matrix is wrong")
    names, at = [], 20
    for _ in range(keys + attributes):
        size = struct.unpack_from("<h", block, at)[0]
        names.append(block[at + 2 : at + 2 + size].decode())
        at += 2 + size
    if at != options_at:
        raise CodecError("the options of the matrix do not follow its names")
    rows, at = [], data_at
    for _ in range(count):
        row, at = _row(block, at, names)
        rows.append(row)
    if at != len(block) - 2:
        raise CodecError("the matrix does not end after its last row")
    return rows


def _row(block: bytes, at: int, names: list[str]) -> tuple[dict[str, Value], int]:
    if block[at] != 2:
        raise CodecError("a row of the matrix lacks its tag")
    at += 1
    values: dict[str, Value] = {}
    for name in names:
        kind = block[at]
        size = _SIZES.get(kind)
        end = at + 1 + (4 + struct.unpack_from("<i", block, at + 1)[0] if size is None else size)
        if kind != 6:
            values[name] = decode_value(block[at:end])
        at = end
    return values, at
