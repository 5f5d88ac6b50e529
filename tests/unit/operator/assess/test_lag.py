"""Lag, movement and counts; an unknown figure stays unknown and is never zero."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.model import ChannelInfo, ChannelStatus, Stage
from ots_tunnel_operator.assess.lag import (
    base_progress,
    count_channels,
    is_initialised,
    measure,
    percent,
    round_figure,
    round_lag,
)
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Peek, Tunnel
from tests.support.operator.worlds import NOW, assessed, base, channel, description, pod, report_channel, world


@pytest.mark.parametrize(
    ("seconds", "rounded"), [(0, 0), (59, 59), (61, 60), (64, 60), (599, 595), (601, 600), (3725, 3720)]
)
def test_lag_is_rounded_so_that_noise_causes_no_write(seconds: int, rounded: int) -> None:
    assert round_lag(seconds) == rounded


@pytest.mark.parametrize(("value", "rounded"), [(0.4, 0), (99.9, 99), (123, 120), (5321, 5300), (98_765, 99_000)])
def test_rates_have_two_digits(value: float, rounded: int) -> None:
    assert round_figure(value) == rounded


def test_no_figures_are_derived_while_the_tunnel_initialises() -> None:
    assert not is_initialised(description(stage=Stage.INIT))
    assert not is_initialised(description(stage=Stage.STREAM))
    assert measure(description(channel("c1"), stage=Stage.INIT), (), NOW) is None
    assert base_progress(description(base("b1"), stage=Stage.INIT)) is None


def test_a_consume_point_of_zero_is_no_lag_since_1970() -> None:
    lag = measure(description(channel("c1", consumed=0.0)), (), NOW)

    assert lag is not None
    assert (lag.seconds, lag.consumed_up_to, lag.caught_up) == (None, None, None)


def test_lag_is_that_of_the_slowest_stream_channel() -> None:
    slow = description(channel("c1", consumed=NOW - 50), channel("c2", consumed=NOW - 7))

    lag = measure(slow, (), NOW)

    assert lag is not None
    assert (lag.seconds, lag.consumed_up_to, lag.caught_up) == (50, NOW - 50, None)


def test_an_idle_table_is_caught_up_and_not_late() -> None:
    lag = measure(description(channel("c1", consumed=NOW - 5000)), (pod("pod-1", report_channel("c1")),), NOW)

    assert lag is not None
    assert (lag.seconds, lag.caught_up) == (0, True)


STALE = pod("pod-1", report_channel("c1", caught_up=True, consumed_up_to=NOW - 3, lag_seconds=3))
OWNER = pod("pod-2", report_channel("c1", caught_up=False, consumed_up_to=NOW - 500, lag_seconds=500))
MOVED = description(channel("c1", client="01234567-pod-2", consumed=NOW - 600))


@pytest.mark.parametrize("pods", [(STALE, OWNER), (OWNER, STALE)])
def test_of_two_workers_that_report_a_channel_its_owner_counts(pods: tuple[Pod, Pod]) -> None:
    lag = measure(MOVED, pods, NOW)

    assert lag is not None
    assert (lag.seconds, lag.caught_up, lag.channels[0].worker) == (500, False, "pod-2")


def test_a_worker_that_is_not_the_owner_does_not_say_that_a_channel_is_caught_up() -> None:
    lag = measure(MOVED, (STALE, pod("pod-2")), NOW)

    assert lag is not None
    assert (lag.seconds, lag.caught_up, lag.channels[0].worker) == (3, None, None)


CAUGHT_UP: list[tuple[list[Any], bool | None]] = [
    ([True, True], True),
    ([True, False], False),
    ([True], None),
    ([False], False),
    ([], None),
]


@pytest.mark.parametrize(("answers", "expected"), CAUGHT_UP)
def test_caught_up_needs_the_report_of_every_worker(answers: list[bool], expected: bool | None) -> None:
    reports = [report_channel(f"c{number}", caught_up=answer) for number, answer in enumerate(answers, 1)]

    lag = measure(description(channel("c1"), channel("c2")), (pod("pod-1", *reports),), NOW)

    assert lag is not None
    assert lag.caught_up is expected


def test_a_report_on_a_channel_that_was_handed_over_does_not_count() -> None:
    lag = measure(description(channel("c1")), (pod("pod-1", report_channel("c1", state="CLOSE")),), NOW)

    assert lag is not None
    assert lag.caught_up is None


def test_unowned_counts_only_channels_of_the_present_stage() -> None:
    counts = count_channels(
        description(
            base("b1", ChannelStatus.OPEN),
            base("b2", ChannelStatus.WAIT, client=""),
            base("b3", ChannelStatus.TERMINATED, client=""),
            channel("c1", ChannelStatus.WAIT, client=""),
            stage=Stage.BASE,
        )
    )

    assert (counts.total, counts.base, counts.stream) == (4, 3, 1)
    assert (counts.open, counts.terminated, counts.unowned) == (1, 1, 1)


@pytest.mark.parametrize(
    ("others", "unowned"),
    [
        ((channel("c2"),), 0),
        ((channel("c2", ChannelStatus.CLOSING),), 0),
        ((channel("c2", ChannelStatus.CLOSE, client=""),), 1),
        ((channel("c2", ChannelStatus.TERMINATED, client=""),), 1),
        ((channel("c2", ChannelStatus.WAIT, client="", consumed=1.0),), 1),
        ((channel("c2", ChannelStatus.WAIT, client=""),), 2),
    ],
    ids=["read", "moves", "free", "has ended", "waits on its way", "new"],
)
def test_a_child_that_waits_for_its_parents_is_not_unowned(others: tuple[ChannelInfo, ...], unowned: int) -> None:
    assert count_channels(description(WAITING, *others)).unowned == unowned


def test_percent_is_100_only_when_everything_is_done() -> None:
    found = base_progress(
        description(base("b1", ChannelStatus.TERMINATED, rows=5), base("b2", rows=2), stage=Stage.BASE)
    )

    assert found == (1, 2, 7)
    assert (percent(199, 200), percent(200, 200), percent(0, 0)) == (99, 100, 0)


def test_the_report_of_a_channels_owner_counts() -> None:
    owner = pod("p-1", report_channel("c1", lag_seconds=7, caught_up=False))
    former = pod("p-2", report_channel("c1", state="CLOSE", lag_seconds=900, caught_up=False))

    for pods in ((owner, former), (former, owner)):
        lag = measure(description(channel("c1", consumed=NOW - 5)), pods, NOW)
        assert lag is not None
        assert lag.seconds == 7


def test_without_a_reported_lag_the_consume_point_counts() -> None:
    silent = pod("pod-1", report_channel("c1", lag_seconds=None, caught_up=False))
    lag = measure(description(channel("c1", consumed=NOW - 5)), (silent,), NOW)

    assert lag is not None
    assert lag.seconds == 5


WAITING = channel("child", ChannelStatus.WAIT, client="")


@pytest.mark.parametrize(
    ("other", "seconds"),
    [
        (channel("c2", client="01234567-pod-2"), None),
        (channel("c2", client="somebody"), None),
        (channel("c2", ChannelStatus.CLOSE, client=""), None),
        (WAITING, 90),
        (channel("c2", client="somebody", consumed=NOW - 300), 300),
    ],
    ids=["not reported", "foreign", "without an owner", "waits for its parent", "known"],
)
def test_the_lag_is_unknown_while_that_of_a_channel_is(other: ChannelInfo, seconds: int | None) -> None:
    late = pod("pod-1", report_channel("c1", lag_seconds=90, caught_up=False))
    lag = measure(description(channel("c1", consumed=NOW - 90), other), (late,), NOW)

    assert lag is not None
    assert lag.seconds == seconds
    assert lag.caught_up is False


def test_a_child_whose_parents_are_read_to_their_end_has_a_lag_that_nobody_knows() -> None:
    lag = measure(description(channel("c1", consumed=NOW - 5), WAITING), (pod("pod-1", report_channel("c1")),), NOW)

    assert lag is not None
    assert (lag.seconds, lag.caught_up) == (None, None)


def test_one_channel_that_is_too_late_is_enough_to_be_degraded() -> None:
    late = pod("pod-1", report_channel("c1", lag_seconds=5000, caught_up=False))
    tunnel = Tunnel(description(channel("c1", consumed=NOW - 5000), channel("c2", client="somebody")))
    found = assessed(world(tunnel=tunnel, pods=(late,)))

    assert found.lag is not None
    assert found.lag.seconds is None
    assert found.degradation is not None
    assert found.degradation.reason is Reason.LAG_HIGH


def test_without_a_worker_the_last_look_that_found_nothing_says_until_when_a_channel_was_read() -> None:
    free = description(channel("c1", ChannelStatus.CLOSE, client="", consumed=NOW - 9000))

    def seconds(peek: Peek | None, *pods: Pod) -> int | None:
        lag = measure(free, pods, NOW, {} if peek is None else {"c1": peek})
        return None if lag is None else lag.seconds

    assert seconds(None) == 9000
    assert seconds(Peek(NOW - 5, True, NOW - 305)) == 305
    assert seconds(Peek(NOW - 5, True)) == 9000
    assert seconds(Peek(NOW - 9900, True, NOW - 9900)) == 9000
    # a worker knows better
    late = report_channel("c1", caught_up=False, lag_seconds=77)
    assert seconds(Peek(NOW - 5, True, NOW - 305), pod("pod-1", late)) == 77
