from __future__ import annotations

import pytest

from ots_tunnel.errors import OwnershipLost
from ots_tunnel.fence import ChannelFence, Fence, boottime, write_deadline


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
    kept, lost = ChannelFence(client), ChannelFence(client)
    lost.revoke()

    kept.check()
    with pytest.raises(OwnershipLost, match="taken away"):
        lost.check()
    client.revoke()
    with pytest.raises(OwnershipLost):
        kept.check()


def test_the_default_clock_counts_from_boot() -> None:
    assert boottime() > 0
