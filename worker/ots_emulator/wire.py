"""Protobuf fields that are joined by hand, because encoding a page of records would cost most of a read.

A message is the concatenation of its fields, so a record is stored as the bytes of one field of its page.
"""

from __future__ import annotations

from functools import lru_cache

#: Tags of ReadRecordsResponse: records (1), next_token (2), may_more_record (3), and of Record: action (1), body (2),
#: origin_record (3).
_RECORDS, _MAY_MORE, _ACTION, _BODY = b"\x0a", b"\x18", b"\x08", b"\x12"
_NEXT_TOKEN = 2
_ORIGIN = 3


# The records and rows of a table have few different lengths.
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


# The records of a table have few different sizes.
@lru_cache(maxsize=4096)
def record_head(action: int, size: int, tail: int = 0) -> bytes:
    """Encode everything before the body of a record in ReadRecordsResponse.records (docs/protocol.md 2.2).

    Args:
        action: 1 put, 2 update, 3 delete.
        size: bytes of the body: PlainBuffer header and row.
        tail: bytes of the fields after the body.
    """
    length = varint(size)
    fields = b"".join((_ACTION, bytes((action,)), _BODY, length))
    return _RECORDS + varint(len(fields) + size + tail) + fields


def origin_field(row: bytes) -> bytes:
    """Encode Record.origin_record, which follows the body; empty without a row."""
    return bytes_field(_ORIGIN, row) if row else b""


def page_tail(next_token: str, *, may_more: bool) -> bytes:
    """Encode the fields of ReadRecordsResponse that follow its records."""
    return bytes_field(_NEXT_TOKEN, next_token.encode()) + _MAY_MORE + bytes((may_more,))
