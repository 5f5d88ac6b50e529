"""The merge of a heartbeat answer (docs/protocol.md 5.6)."""

from __future__ import annotations

import pytest

from ots_tunnel.model import Channel, ChannelId, ChannelStatus
from ots_tunnel.protocol.assignment import merge

A, B = ChannelId("a"), ChannelId("b")
OPEN, CLOSING = ChannelStatus.OPEN, ChannelStatus.CLOSING
CLOSE, TERMINATED = ChannelStatus.CLOSE, ChannelStatus.TERMINATED


def local(*channels: Channel) -> dict[ChannelId, Channel]:
    return {channel.channel_id: channel for channel in channels}


def test_unknown_channel_is_inserted_and_fresh() -> None:
    found = merge({}, [Channel(A, 1, OPEN)])

    assert found.channels == local(Channel(A, 1, OPEN))
    assert (found.fresh, found.vanished) == ((A,), ())


def test_channel_missing_from_the_answer_is_forgotten() -> None:
    found = merge(local(Channel(A, 1, OPEN), Channel(B, 3, CLOSE)), [Channel(A, 1, OPEN)])

    assert found.channels == local(Channel(A, 1, OPEN))
    assert (found.fresh, found.vanished) == ((), (B,))


@pytest.mark.parametrize(
    ("ours", "theirs", "kept"),
    [
        (Channel(A, 1, OPEN), Channel(A, 2, CLOSING), Channel(A, 2, CLOSING)),
        (Channel(A, 2, TERMINATED), Channel(A, 2, CLOSING), Channel(A, 2, CLOSING)),
        (Channel(A, 2, TERMINATED), Channel(A, 1, OPEN), Channel(A, 2, TERMINATED)),
    ],
    ids=["newer copy of the service", "equal versions", "newer copy of ours"],
)
def test_higher_version_wins_and_the_service_wins_a_tie(ours: Channel, theirs: Channel, kept: Channel) -> None:
    assert merge(local(ours), [theirs]).channels == local(kept)


@pytest.mark.parametrize("closed", [CLOSE, TERMINATED])
def test_channel_opened_again_after_our_report_starts_afresh(closed: ChannelStatus) -> None:
    assert merge(local(Channel(A, 2, closed)), [Channel(A, 3, OPEN)]).fresh == (A,)


def test_report_that_crossed_with_the_services_change_keeps_its_connection() -> None:
    assert merge(local(Channel(A, 2, TERMINATED)), [Channel(A, 2, CLOSING)]).fresh == ()


@pytest.mark.parametrize("status", [CLOSE, TERMINATED])
def test_echo_of_a_closed_channel_gets_no_connection(status: ChannelStatus) -> None:
    assert merge({}, [Channel(A, 2, status)]).fresh == ()


def test_open_channel_keeps_its_connection() -> None:
    assert merge(local(Channel(A, 2, OPEN)), [Channel(A, 5, OPEN)]).fresh == ()


def test_channel_named_twice_counts_with_its_highest_version() -> None:
    found = merge({}, [Channel(A, 3, CLOSING), Channel(A, 2, OPEN)])

    assert found.channels == local(Channel(A, 3, CLOSING))
