"""The few protobuf pieces that are put together by hand because a page of them must cost nothing.

A message is the concatenation of its fields, so an encoded record is kept as the bytes of one field of its page.
"""

from __future__ import annotations

from functools import lru_cache


# Lengths of records and rows of a table are few.
@lru_cache(maxsize=4096)
def varint(value: int) -> bytes:
    """Encode a non-negative integer."""
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def bytes_field(number: int, content: bytes) -> bytes:
    """Encode a length-delimited field."""
    return bytes((number << 3 | 2,)) + varint(len(content)) + content


def record_field(action: int, body: bytes) -> bytes:
    """Encode one `Record` as an element of ReadRecordsResponse.records (docs/protocol.md 2.2).

    Args:
        action: 1 put, 2 update, 3 delete.
        body: PlainBuffer header and row.
    """
    return record_head(action, len(body)) + body


# Records of a table have few different sizes.
@lru_cache(maxsize=4096)
def record_head(action: int, size: int) -> bytes:
    """Encode what stands before a body of `size` bytes in the field of a record."""
    length = varint(size)
    return b"".join((b"\x0a", varint(3 + len(length) + size), b"\x08", bytes((action,)), b"\x12", length))


def page_tail(next_token: str, *, may_more: bool) -> bytes:
    """Encode the fields of ReadRecordsResponse that follow its records."""
    return bytes_field(2, next_token.encode()) + (b"\x18\x01" if may_more else b"\x18\x00")
