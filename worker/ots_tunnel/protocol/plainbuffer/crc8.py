"""CRC-8 of PlainBuffer: polynomial 0x07, initial 0, no reflection, no final xor (docs/protocol.md 3.2)."""

from __future__ import annotations

from ots_tunnel.protocol.plainbuffer.compiled import native

if native is not None:
    _continue = native.crc8
else:
    from fastcrc.crc8 import smbus as _continue


def crc8(data: bytes | memoryview, crc: int = 0) -> int:
    """Continue the checksum `crc` over `data`."""
    checksum: int = _continue(data, crc)
    return checksum
