from __future__ import annotations

from pathlib import Path

import pytest

from ots_tunnel.errors import OwnershipLost
from ots_tunnel.fence import Fence, InDoubt, RequestFence, boottime, write_deadline
from ots_tunnel.model import ChannelId
from tests.support.guards import ClosedGuard, OpenGuard


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_d_is_a_third_of_what_the_timeout_leaves_over() -> None:
    assert write_deadline(60, 10) == pytest.approx(16.667, abs=0.001)


def test_nothing_passes_before_the_first_answered_heartbeat(clock: Clock) -> None:
    with pytest.raises(OwnershipLost):
        Fence(60, 10, clock).check()


def test_closes_d_before_the_timeout_counted_from_the_heartbeats_sending(clock: Clock) -> None:
    fence = Fence(timeout=15, interval=6, clock=clock)  # D = 3
    fence.heartbeat_answered(sent_at=98.0)

    clock.now = 109.9
    fence.check()
    clock.now = 110.0
    with pytest.raises(OwnershipLost, match="too old"):
        fence.check()


def test_answers_out_of_order_do_not_move_it_back(clock: Clock) -> None:
    fence = Fence(15, 6, clock)
    fence.heartbeat_answered(100.0)
    fence.heartbeat_answered(50.0)

    assert fence.answered == 100.0
    fence.check()


def test_a_revoked_fence_stays_closed(clock: Clock) -> None:
    fence = Fence(15, 6, clock)
    fence.heartbeat_answered(100.0)
    fence.revoke()

    with pytest.raises(OwnershipLost):
        fence.check()


def test_a_channels_fence_closes_alone_or_with_its_client(clock: Clock) -> None:
    client = Fence(15, 6, clock)
    client.heartbeat_answered(100.0)
    kept, lost = (client.channel(ChannelId(name)) for name in ("a", "b"))
    lost.revoke()

    kept.check()
    with pytest.raises(OwnershipLost, match="taken away"):
        lost.check()
    client.revoke()
    with pytest.raises(OwnershipLost):
        kept.check()


def test_a_write_is_in_doubt_until_it_is_confirmed(clock: Clock) -> None:
    fence = Fence(60, 30, clock, clock).channel(ChannelId("a"))  # D = 10

    fence.begin_write()
    clock.now += 100
    assert fence.in_doubt == 10
    fence.confirm_writes()
    assert fence.in_doubt == 0


def test_an_abandoned_write_is_in_doubt_for_d(clock: Clock) -> None:
    client = Fence(60, 30, clock, clock)
    fence = client.channel(ChannelId("a"))
    fence.begin_write()
    clock.now += 100

    fence.abandon_write()

    assert (fence.in_doubt, client.in_doubt) == (10, 10)
    clock.now += 4
    fence.abandon_write()  # once is enough
    assert fence.in_doubt == 6
    clock.now += 6
    assert (fence.in_doubt, client.in_doubt) == (0, 0)


def test_a_channel_that_returns_inherits_the_doubt_of_its_last_write(clock: Clock) -> None:
    client = Fence(60, 30, clock, clock)
    last = client.channel(ChannelId("a"))
    last.begin_write()
    last.revoke()
    last.abandon_write()
    clock.now += 3

    assert client.channel(ChannelId("a")).in_doubt == 7
    assert client.channel(ChannelId("b")).in_doubt == 0


def test_the_doubt_about_a_write_begins_when_it_has_ended_and_not_when_its_channel_is_taken_away(clock: Clock) -> None:
    client = Fence(60, 30, clock, clock)
    last = client.channel(ChannelId("a"))
    last.begin_write()
    last.revoke()
    clock.now += 100
    following = client.channel(ChannelId("a"))

    assert (last.in_doubt, following.in_doubt, client.in_doubt) == (10, 10, 10)
    clock.now += 4
    last.abandon_write()
    clock.now += 3
    assert following.in_doubt == 7
    clock.now += 7
    assert (following.in_doubt, client.in_doubt) == (0, 0)


def test_a_write_that_was_not_begun_cannot_be_abandoned(clock: Clock) -> None:
    doubt = InDoubt(10, clock)

    doubt.abandon()

    assert doubt.seconds == 0


def test_a_request_is_in_doubt_from_the_moment_it_left() -> None:
    fence = RequestFence(OpenGuard(), 10)
    assert fence.in_doubt == 0

    fence.check()

    assert 9 < fence.in_doubt <= 10


def test_a_request_that_may_not_leave_is_not_in_doubt() -> None:
    fence = RequestFence(ClosedGuard(), 10)

    with pytest.raises(OwnershipLost):
        fence.check()

    assert fence.in_doubt == 0


def test_the_default_clock_counts_from_boot() -> None:
    seconds_since_boot = float(Path("/proc/uptime").read_text().split()[0])

    assert boottime() == pytest.approx(seconds_since_boot, abs=5)
