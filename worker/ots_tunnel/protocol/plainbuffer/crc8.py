"""CRC-8 of PlainBuffer: polynomial 0x07, initial 0, no reflection, no final xor (docs/protocol.md 3.2)."""

from __future__ import annotations

from fastcrc.crc8 import smbus as _smbus


def crc8(data: bytes | memoryview, crc: int = 0) -> int:
    """Continue the checksum `crc` over `data`."""
    return _smbus(data, crc)
