"""What may be missing between the changes that a channel has consumed and the page that it reads next."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.model import (
    FINISHED,
    ChannelId,
    ChannelInfo,
    ChannelStatus,
    ChannelType,
    ClientId,
    Stage,
    StreamConfig,
    Token,
    TunnelDescription,
    TunnelId,
    TunnelInfo,
    TunnelType,
)
from ots_tunnel.protocol.possible_gap import (
    Gap,
    needs_parents,
    possible_gap,
    read_on,
    read_until,
    within_stream,
)
from ots_tunnel.protocol.token import TokenContent, build_token

HOUR = 3600.0
NOW = 1_700_000_000.0
CHANNEL = ChannelId("4873ae54_1")
TIMES = st.floats(0, 2 * NOW, allow_nan=False)


@pytest.mark.parametrize(
    ("until", "first", "expected"),
    [
        pytest.param(None, NOW - 1, None, id="unknown"),
        pytest.param(NOW - HOUR, NOW - 1, None, id="just within the retention"),
        pytest.param(NOW, None, None, id="caught up"),
        pytest.param(NOW + 60, None, None, id="a clock that went back"),
        pytest.param(NOW - HOUR - 1, NOW - 9, Gap(NOW - HOUR - 1, NOW - 9), id="before it, a later record"),
        pytest.param(NOW - 9 * HOUR, None, Gap(NOW - 9 * HOUR, NOW), id="before it, no record"),
        pytest.param(NOW - 9 * HOUR, NOW - 9 * HOUR, None, id="the log still has what was consumed"),
        pytest.param(NOW - 9 * HOUR, NOW - 10 * HOUR, None, id="the log still has more"),
        pytest.param(NOW - 9 * HOUR, NOW - 8 * HOUR, Gap(NOW - 9 * HOUR, NOW - 8 * HOUR), id="trimmed late"),
    ],
)
def test_what_may_be_missing(until: float | None, first: float | None, expected: Gap | None) -> None:
    assert possible_gap(until, answered=NOW, first=first, retention=HOUR) == expected


@given(until=TIMES, answered=TIMES, first=st.none() | TIMES, retention=st.floats(HOUR, 168 * HOUR))
def test_a_gap_is_one_of_time_and_only_beyond_the_retention(
    until: float, answered: float, first: float | None, retention: float
) -> None:
    gap = possible_gap(until, answered=answered, first=first, retention=retention)

    if until >= answered - retention:
        assert gap is None
    if gap is not None:
        assert gap.start == until < gap.end


@pytest.mark.parametrize(
    ("until", "last", "reached_end", "expected"),
    [
        (None, None, False, None),
        (None, None, True, NOW),
        (None, 5.0, False, 5.0),
        (5.0, 7.0, False, 7.0),
        (7.0, 5.0, False, 7.0),
        (5.0, 7.0, True, NOW),
        (NOW + 60, None, True, NOW + 60),
    ],
)
def test_how_far_a_page_goes(
    until: float | None, last: float | None, reached_end: bool, expected: float | None
) -> None:
    assert read_on(until, answered=NOW, last=last, reached_end=reached_end) == expected


def token(seconds: float = 0) -> Token:
    return build_token(TokenContent(iterator="i", timestamp=int(seconds * 1e9)))


def channel(name: str = CHANNEL, point: float = 0, **changes: object) -> ChannelInfo:
    info = ChannelInfo(
        ChannelId(name), ChannelType.STREAM, ChannelStatus.OPEN, ClientId(""), consume_point_ns=int(point * 1e9), rows=0
    )
    return replace(info, **changes)


def tunnel(*channels: ChannelInfo, created: float = 50, config: StreamConfig | None = None) -> TunnelDescription:
    info = TunnelInfo(
        TunnelId("t"), "t", TunnelType.Stream, "table", "demo", "", Stage.STREAM, False, int(created * 1e9), config
    )
    return TunnelDescription(info, channels, 0)


ENDED = ChannelStatus.TERMINATED


@pytest.mark.parametrize(
    ("of", "description", "expected"),
    [
        pytest.param(token(7), None, 7, id="only the token"),
        pytest.param(token(), None, None, id="a token without a time"),
        pytest.param(Token("?"), None, None, id="an unreadable token"),
        pytest.param(FINISHED, None, None, id="the end"),
        pytest.param(token(9), tunnel(channel(point=7)), 7, id="the service has moved the cursor"),
        pytest.param(token(7), tunnel(channel(point=9)), 9, id="the consume point moves by reads"),
        pytest.param(token(7), tunnel(channel()), 7, id="no consume point"),
        pytest.param(token(7), tunnel(channel("another")), 7, id="not described, with a time"),
        pytest.param(token(), tunnel(channel("another")), None, id="not described"),
        pytest.param(token(), tunnel(channel()), 50, id="never consumed: the creation"),
        pytest.param(token(), tunnel(channel(), created=0), None, id="never consumed, creation unknown"),
        pytest.param(
            token(), tunnel(channel(), config=StreamConfig(start_offset_ns=40 * 10**9)), 40, id="the start offset"
        ),
        pytest.param(token(), tunnel(channel(), config=StreamConfig(earliest=True)), 50, id="the earliest change"),
        pytest.param(
            token(),
            tunnel(channel(), channel("p", 60, status=ENDED), channel("q", 70, status=ENDED)),
            50,
            id="beside channels that have ended: their ends are not its own",
        ),
        pytest.param(
            token(), tunnel(channel(), channel("p", status=ENDED)), 50, id="beside one that ended, nobody knows when"
        ),
        pytest.param(
            token(),
            tunnel(channel(), channel("b", status=ENDED, channel_type=ChannelType.BASE)),
            50,
            id="base channels have no children",
        ),
    ],
)
def test_how_far_a_channel_was_read(of: Token, description: TunnelDescription | None, expected: float | None) -> None:
    assert read_until(CHANNEL, of, description) == expected


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        pytest.param((), 50, id="none"),
        pytest.param(("p",), 60, id="the other end of a split"),
        pytest.param(("p", "q"), 70, id="a merge"),
        pytest.param(("p", "gone"), 60, id="one that the tunnel does not list"),
        pytest.param(("gone",), 50, id="none that the tunnel lists"),
        pytest.param(("open",), 50, id="one that has not ended"),
        pytest.param(("ageless",), None, id="one that ended, nobody knows when"),
    ],
)
def test_a_channel_that_was_never_consumed_begins_where_its_own_parents_ended(
    parents: tuple[str, ...], expected: float | None
) -> None:
    ends = (channel("p", 60, status=ENDED), channel("q", 70, status=ENDED), channel("ageless", status=ENDED))
    description = tunnel(channel(), channel("open", 90), channel("later", 95, status=ENDED), *ends)

    assert read_until(CHANNEL, token(), description, parents=parents) == expected
    assert read_until(CHANNEL, token(7), description, parents=parents) == 7


@pytest.mark.parametrize(
    ("of", "description", "now", "needs"),
    [
        pytest.param(token(), tunnel(channel(), channel("p", 60, status=ENDED)), 50 + HOUR + 1, True, id="never read"),
        pytest.param(token(), tunnel(channel(), channel("p", 60, status=ENDED)), None, True, id="time unknown"),
        pytest.param(token(), tunnel(channel(), channel("p", 60, status=ENDED)), 50 + HOUR, False, id="young tunnel"),
        pytest.param(token(), tunnel(channel(), channel("p", 60)), 50 + 9 * HOUR, False, id="nothing has ended"),
        pytest.param(token(), tunnel(channel("p", 60, status=ENDED)), 50 + 9 * HOUR, False, id="not described"),
        pytest.param(
            token(7), tunnel(channel(), channel("p", 60, status=ENDED)), None, False, id="a token with a time"
        ),
        pytest.param(token(), tunnel(channel(point=7), channel("p", 60, status=ENDED)), None, False, id="consumed"),
    ],
)
def test_parents_are_asked_for_only_where_they_tell_something(
    of: Token, description: TunnelDescription, now: float | None, needs: bool
) -> None:
    assert needs_parents(CHANNEL, of, replace(description, service_time=now)) is needs


@pytest.mark.parametrize(
    ("description", "mark", "expected"),
    [
        (None, 9.0, 9.0),
        (tunnel(channel(point=7)), 9.0, 9.0),
        (tunnel(channel(point=7)), 5.0, 7.0),
        (tunnel(channel(), channel("p", status=ENDED)), 9.0, 50.0),
        (tunnel(channel(), channel("p", 60, status=ENDED)), 9.0, 50.0),
        (tunnel(channel(), channel("p", 60, status=ENDED)), 55.0, 55.0),
    ],
)
def test_a_read_mark_counts_where_it_is_later(
    description: TunnelDescription | None, mark: float, expected: float
) -> None:
    assert read_until(CHANNEL, token(), description, mark=mark) == expected


@pytest.mark.parametrize(
    ("description", "enabled", "expected"),
    [
        pytest.param(tunnel(created=50), 45.0, 45.0, id="a start offset before the stream"),
        pytest.param(tunnel(created=50), 35.0, 40.0, id="a stream that is older"),
        pytest.param(tunnel(created=50), 60.0, 40.0, id="enabled again since"),
        pytest.param(tunnel(created=50), None, 40.0, id="unknown when"),
        pytest.param(None, 45.0, 40.0, id="not described"),
    ],
)
def test_what_a_stream_never_had_is_not_missing(
    description: TunnelDescription | None, enabled: float | None, expected: float
) -> None:
    assert within_stream(40.0, description, enabled) == expected


@given(created_us=st.integers(1_500_000_000_000_000, 2_500_000_000_000_000))
def test_a_stream_enabled_by_the_creation_of_the_tunnel_is_as_old_as_the_tunnel(created_us: int) -> None:
    description = tunnel()
    info = replace(description.tunnel, create_time_ns=created_us * 1000)
    enabled = created_us / 1e6

    assert within_stream(0.0, replace(description, tunnel=info), enabled) == enabled
    assert within_stream(0.0, replace(description, tunnel=info), (created_us + 1) / 1e6) == 0.0
