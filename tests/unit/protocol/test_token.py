"""Contents of tokens, and malformed tokens."""

from __future__ import annotations

import base64

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.model import FINISHED, ChannelId, ChannelType, Token
from ots_tunnel.protocol import tunnel_pb2
from ots_tunnel.protocol.token import TokenContent, build_token, channel_type, is_stream_token, parse_token

STREAM = build_token(TokenContent(iterator="it"))
BASE = build_token(TokenContent(primary_key=b"row"))


def wire(version: int, content: bytes) -> Token:
    message = tunnel_pb2.Token(version=version, content=content)
    return Token(base64.b64encode(message.SerializeToString()).decode())


NO_TOKENS = [
    FINISHED,
    "",
    "not base64",
    "CAI=",
    wire(3, b""),
    wire(0, b""),
    wire(2, b"\x0a\x05"),
    "é",
    wire(2, b"\x12\x01\xff"),
]


@pytest.mark.parametrize("token", NO_TOKENS)
def test_a_malformed_token_is_refused(token: Token) -> None:
    with pytest.raises(CodecError):
        parse_token(token)


@pytest.mark.parametrize("token", NO_TOKENS)
def test_a_malformed_token_is_not_of_the_stream(token: Token) -> None:
    assert not is_stream_token(token)


def test_iterator_makes_a_stream_token() -> None:
    assert is_stream_token(STREAM)
    assert not is_stream_token(BASE)


@pytest.mark.parametrize("version", [0, 3])
def test_only_two_versions_are_written(version: int) -> None:
    with pytest.raises(CodecError, match="known are 1 and 2"):
        build_token(TokenContent(version=version))


@pytest.mark.parametrize(
    ("channel_id", "token", "expected"),
    [
        ("BaseData_0", STREAM, ChannelType.BASE),
        ("BaseData_0", FINISHED, ChannelType.BASE),
        ("4873ae54_1554348641329421", STREAM, ChannelType.STREAM),
        ("4873ae54_1554348641329421", FINISHED, ChannelType.STREAM),
        ("unprefixed", BASE, ChannelType.BASE),
    ],
)
def test_channel_type_comes_from_the_id_then_the_token(channel_id: str, token: Token, expected: ChannelType) -> None:
    assert channel_type(ChannelId(channel_id), token) is expected


def test_only_known_versions_are_built() -> None:
    with pytest.raises(CodecError, match="token version 3, known are 1 and 2"):
        build_token(TokenContent(version=3, iterator="i"))


def test_a_token_without_a_position_carries_its_time() -> None:
    content = TokenContent(timestamp=5)

    assert parse_token(build_token(content)) == content
