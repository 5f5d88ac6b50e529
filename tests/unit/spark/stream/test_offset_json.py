"""Offsets in Spark's log: the same offset has the same text, and what is no offset is refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import ConfigError
from ots_tunnel.model import FINISHED, ChannelId, SequenceInfo, Token, TunnelId
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.spark.stream.offset_json import offset_from_json, offset_to_json
from ots_tunnel.spark.stream.offsets import ChannelOffset, Offset, Position, Span

numbers = st.integers(0, 2**63 - 1)
marks = st.none() | st.builds(SequenceInfo, numbers, numbers, numbers) | st.binary(min_size=1, max_size=30)
tokens = st.just(FINISHED) | st.text(min_size=1, max_size=20).map(Token)
names = st.text(min_size=1, max_size=10).map(ChannelId)
channel_offsets = st.builds(
    ChannelOffset,
    st.builds(Position, tokens, marks, st.none() | numbers, st.none() | st.builds(Gap, numbers, numbers)),
    st.none() | st.builds(Span, tokens, marks, st.integers(1, 10**9)),
)
offsets = st.builds(
    Offset,
    st.uuids().map(lambda found: TunnelId(str(found))),
    st.uuids().map(lambda found: found.hex),
    st.dictionaries(names, channel_offsets, max_size=5),
    st.none() | st.frozensets(names, max_size=5),
    st.dictionaries(names, numbers, max_size=5),
)

ONE: dict[str, Any] = {
    "channels": {"c": {"after": [0, 17, 0], "from": "t1", "last": [0, 18, 2], "rows": 3, "to": "t2"}},
    "ended": ["a", "b"],
    "query": "q",
    "readBefore": {"d": 7},
    "tunnel": "id",
    "version": 1,
}


@given(offsets)
def test_an_offset_comes_back_from_its_text(offset: Offset) -> None:
    assert offset_from_json(json.loads(json.dumps(offset_to_json(offset)))) == offset


@given(offsets)
def test_equal_offsets_have_equal_text(offset: Offset) -> None:
    turned = replace(
        offset,
        channels=dict(reversed(list(offset.channels.items()))),
        read_before=dict(reversed(list(offset.read_before.items()))),
    )

    assert json.dumps(offset_to_json(turned)) == json.dumps(offset_to_json(offset))


def test_the_form_is_the_documented_one() -> None:
    span = Span(Token("t1"), SequenceInfo(0, 17, 0), 3)
    channel = ChannelOffset(Position(Token("t2"), SequenceInfo(0, 18, 2)), span)

    ended = frozenset({ChannelId("b"), ChannelId("a")})
    offset = Offset(TunnelId("id"), "q", {ChannelId("c"): channel}, ended, {ChannelId("d"): 7})

    assert json.dumps(offset_to_json(offset)) == json.dumps(ONE)
    assert offset_from_json({name: ONE[name] for name in ONE if name != "ended"}).ended is None


def test_an_idle_channel_tells_until_when_it_was_read() -> None:
    idle = ChannelOffset(Position(Token("t2"), SequenceInfo(0, 18, 2), 1_700_000_000))

    found = offset_to_json(Offset(TunnelId("id"), "q", {ChannelId("c"): idle}))

    assert found["channels"] == {"c": {"last": [0, 18, 2], "to": "t2", "until": 1_700_000_000}}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"version": 2}, "found offsets of version 2, this release reads version 1"),
        ({"version": True}, "found offsets of version True"),
        ({"tunnel": ""}, "tunnel: found str, allowed is text"),
        ({"query": 5}, "query: found int, allowed is text"),
        ({"channels": []}, "channels: found list, allowed is an object"),
        ({"channels": {"c": {"to": None}}}, r"channels\.c\.to: found NoneType"),
        ({"channels": {"c": {"to": "t", "last": [1, 2]}}}, r"channels\.c\.last: found list, allowed is three numbers"),
        ({"channels": {"c": {"to": "t", "last": "no base64"}}}, r"channels\.c\.last: found str"),
        ({"channels": {"c": {"to": "t", "from": "s", "rows": 0}}}, r"channels\.c\.rows: found int"),
        (
            {"channels": {"c": {"to": "t", "until": -1}}},
            r"channels\.c\.until: found int, allowed is a number",
        ),
        ({"channels": {"c": {"to": "t", "until": "now"}}}, r"channels\.c\.until: found str"),
        ({"ended": "c"}, "ended: found str, allowed is a list of texts"),
        ({"readBefore": {"c": None}}, r"readBefore\.c: found NoneType, allowed is a number"),
        ({"channels": {"c": {"to": "t", "gap": [1]}}}, r"channels\.c\.gap: found list, allowed is two numbers"),
    ],
)
def test_what_is_no_offset_is_refused_by_name(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^checkpointLocation: {message}"):
        offset_from_json({**ONE, **changed})


def test_an_error_shows_no_token() -> None:
    with pytest.raises(ConfigError) as caught:
        offset_from_json({**ONE, "channels": {"c": {"to": "t", "last": "secret key"}}})

    assert "secret" not in str(caught.value)
