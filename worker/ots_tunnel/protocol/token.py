"""Read cursors, which the service also stores as checkpoints (docs/protocol.md 2.4).

A client reads two facts from a token: whether the channel is at its end (`FINISHED`), and whether it reads the stream.
For anything else a token is opaque. The emulator builds its own.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from ots_tunnel.errors import CodecError
from ots_tunnel.model import FINISHED, ChannelId, ChannelType, Token
from ots_tunnel.protocol import tunnel_pb2

#: Ids of base channels begin with this (docs/protocol.md 2.3).
BASE_CHANNEL_PREFIX = "BaseData_"


@dataclass(frozen=True, slots=True)
class TokenContent:
    """Content of a token.

    `primary_key` is set for base data and holds PlainBuffer with header; `iterator` is set for the stream;
    `total_count` is the number of rows so far, which version 1 lacks.
    """

    version: int = 2
    primary_key: bytes | None = None
    iterator: str = ""
    timestamp: int = 0
    total_count: int = 0


def parse_token(token: Token) -> TokenContent:
    """Read a token of version 1 or 2.

    Raises:
        CodecError: the text is `FINISHED` or not a token.
    """
    if token == FINISHED:
        raise CodecError(f"{FINISHED!r} marks the end of a channel and holds no position")
    try:
        outer = tunnel_pb2.Token.FromString(base64.b64decode(token, validate=True))
        if not outer.IsInitialized():
            raise CodecError("token lacks its version or content")
        if outer.version not in (1, 2):
            raise CodecError(f"token version {outer.version}, known are 1 and 2")
        # Version 1 lacks one field and is otherwise the same message.
        content = tunnel_pb2.TokenContentV2.FromString(outer.content)
    except (binascii.Error, ValueError, DecodeError) as error:
        raise CodecError("token is not base64 of a token message") from error
    if not isinstance(content.iterator, str):
        raise CodecError("token's iterator is not UTF-8")
    return TokenContent(
        version=outer.version,
        primary_key=content.primary_key if content.HasField("primary_key") else None,
        iterator=content.iterator,
        timestamp=content.timestamp,
        total_count=content.total_count if outer.version == 2 else 0,
    )


def build_token(content: TokenContent) -> Token:
    """Build a token; a stream token carries its timestamp even where that is 0, as the service's tokens do.

    Raises:
        CodecError: a version other than 1 and 2.
    """
    if content.version not in (1, 2):
        raise CodecError(f"token version {content.version}, known are 1 and 2")
    message = tunnel_pb2.TokenContentV2()
    if content.primary_key is not None:
        message.primary_key = content.primary_key
    if content.iterator:
        message.iterator = content.iterator
        message.timestamp = content.timestamp
    elif content.timestamp:
        message.timestamp = content.timestamp
    if content.version == 2:
        message.total_count = content.total_count
    outer = tunnel_pb2.Token(version=content.version, content=message.SerializeToString(deterministic=True))
    return Token(base64.b64encode(outer.SerializeToString(deterministic=True)).decode())


def is_stream_token(token: Token) -> bool:
    """Whether a channel with this token reads the stream; False for `FINISHED` and for unreadable tokens."""
    try:
        return bool(parse_token(token).iterator)
    except CodecError:
        return False


def channel_type(channel_id: ChannelId, token: Token) -> ChannelType:
    """Type of a channel by its id, or by its token where the id does not tell; a finished one then counts as stream."""
    if channel_id.startswith(BASE_CHANNEL_PREFIX):
        return ChannelType.BASE
    return ChannelType.STREAM if token == FINISHED or is_stream_token(token) else ChannelType.BASE
