"""Tokens of the emulator: encoding and decoding (docs/protocol.md 2.4).

A base token holds the key at which the next page starts. A stream token holds a position in a partition's log, and
the time until which everything has been read when the page before it is consumed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ots_emulator.refusal import parameter_invalid
from ots_emulator.tables.keys import BOUND_VALUE_BYTES, Key, KeySchema
from ots_tunnel.errors import CodecError
from ots_tunnel.model import Token
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key
from ots_tunnel.protocol.token import TokenContent, build_token, parse_token

#: 18 digits: more entries than any log has.
_POSITION: Final = re.compile(r"[0-9]{1,18}")
#: Records of a page are added to a token's count, and the sum must still fit into int64.
_NUMBER_LIMIT: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class BaseCursor:
    """The next key of a base channel, and the rows read before it."""

    key: Key
    rows: int


@dataclass(frozen=True, slots=True)
class StreamCursor:
    """The next position of a stream channel, the records read before it, and the time (ns) it stands for."""

    position: int
    rows: int
    time_ns: int


def base_token(schema: KeySchema, cursor: BaseCursor) -> Token:
    """Encode a position of a base channel."""
    return build_token(TokenContent(primary_key=schema.encode(cursor.key), total_count=cursor.rows))


def stream_token(partition_id: str, cursor: StreamCursor) -> Token:
    """Encode a position of a stream channel."""
    iterator = f"{partition_id}:{cursor.position}"
    return build_token(TokenContent(iterator=iterator, timestamp=cursor.time_ns, total_count=cursor.rows))


def read_base_token(token: str, schema: KeySchema, start: Key, end: Key) -> BaseCursor:
    """Decode a token of the base channel from `start` (inclusive) to `end` (exclusive).

    Raises:
        Refusal: it is malformed, or belongs to another table or channel.
    """
    content = _read(token)
    try:
        if content.primary_key is None:
            raise parameter_invalid("[tunnelservice] token of a base channel has no primary key")
        # The next page starts right after a key, which is a byte longer than any key may be.
        key = schema.bound(decode_primary_key(content.primary_key), longest=BOUND_VALUE_BYTES)
        cursor = BaseCursor(key, content.total_count)
    except CodecError as error:
        raise parameter_invalid(f"[tunnelservice] invalid token: {error}") from error
    # The end of a channel is the start of the next one. At its end it has read rows, at its start it has not.
    if not (start < cursor.key <= end if cursor.rows else start <= cursor.key < end):
        raise parameter_invalid("[tunnelservice] token does not belong to this channel")
    return cursor


def read_stream_token(token: str, partition_id: str) -> StreamCursor:
    """Decode a stream token.

    Raises:
        Refusal: it is malformed or belongs to another partition.
    """
    content = _read(token)
    owner, _, position = (content.iterator or "").rpartition(":")
    if owner != partition_id or not _POSITION.fullmatch(position):
        raise parameter_invalid("[tunnelservice] token does not belong to this channel")
    return StreamCursor(int(position), content.total_count, content.timestamp)


def _read(token: str) -> TokenContent:
    try:
        content = parse_token(Token(token))
    except CodecError as error:
        raise parameter_invalid(f"[tunnelservice] invalid token: {error}") from error
    for name, number in (("total_count", content.total_count), ("timestamp", content.timestamp)):
        if not 0 <= number < _NUMBER_LIMIT:
            raise parameter_invalid(f"[tunnelservice] invalid token: {name} {number} is not within [0, 2^62)")
    return content
