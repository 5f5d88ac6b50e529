"""Scale-ups that did not help."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ots_tunnel_operator.autoscale.effect import is_blocked, judged, relieved
from ots_tunnel_operator.autoscale.formula import Load
from ots_tunnel_operator.autoscale.history import History, Trial
from ots_tunnel_operator.autoscale.policy import Policy
from ots_tunnel_operator.autoscale.record import Record

POLICY = Policy()
TRIAL = Trial(100.0, 4, 8, 1000.0)
TRIED = History(trial=TRIAL)
#: As slow as before, and still behind.
USELESS = Load(lag=200.0, pace=0.9, busy=0.6, rate=1100.0, span=60.0)


def test_without_a_trial_there_is_nothing_to_judge() -> None:
    assert judged(POLICY, History(), 8, 16, USELESS, 200.0) == (History(), None)


def test_it_is_not_judged_before_the_fleet_has_settled() -> None:
    assert judged(POLICY, TRIED, 8, 16, USELESS, 129.0) == (TRIED, None)


def test_a_verdict_against_it_needs_a_minute_of_figures() -> None:
    assert judged(POLICY, TRIED, 8, 16, replace(USELESS, span=30.0), 150.0) == (TRIED, None)


def test_one_that_did_not_help_is_given_back() -> None:
    history, useless = judged(POLICY, TRIED, 8, 16, USELESS, 200.0)

    assert useless == TRIAL
    assert history.trial is None
    assert is_blocked(history, Record(4), 1999.0)
    assert not is_blocked(history, Record(4), 2000.0)


@pytest.mark.parametrize(
    "helped",
    [replace(USELESS, lag=60.0), replace(USELESS, pace=1.1), replace(USELESS, rate=1200.0)],
    ids=["in time", "catching up", "a fifth of the growth"],
)
def test_one_that_helped_is_kept(helped: Load) -> None:
    history, useless = judged(POLICY, replace(TRIED, ineffective=3), 8, 16, helped, 200.0)

    assert useless is None
    assert (history.trial, history.ineffective) == (None, 0)


def test_an_unknown_rate_judges_nobody() -> None:
    history, useless = judged(POLICY, TRIED, 8, 16, replace(USELESS, rate=None), 200.0)

    assert (history.trial, useless) == (None, None)


@pytest.mark.parametrize("channels", [8, 14, 15])
def test_one_that_leaves_as_many_channels_to_the_fullest_worker_is_no_evidence(channels: int) -> None:
    before, after = {8: (5, 6), 14: (5, 6), 15: (9, 12)}[channels]
    tried = replace(TRIED, trial=Trial(100.0, before, after, 1000.0), ineffective=1)

    assert judged(POLICY, tried, after, channels, USELESS, 200.0) == (replace(tried, trial=None), None)


def test_a_number_that_somebody_else_has_changed_says_nothing() -> None:
    history, useless = judged(POLICY, TRIED, 6, 16, USELESS, 101.0)

    assert (history.trial, useless) == (None, None)


def test_each_further_one_blocks_twice_as_long_up_to_four_hours() -> None:
    history, blocks = History(), []
    for _ in range(6):
        history = judged(POLICY, replace(history, trial=TRIAL), 8, 16, USELESS, 200.0)[0]
        blocks.append(history.blocked_until - 200.0)

    assert blocks == [1800.0, 3600.0, 7200.0, 14_400.0, 14_400.0, 14_400.0]


@pytest.mark.parametrize(("channels", "blocked"), [(8, True), (17, False), (16, True), (None, True)])
def test_more_channels_end_the_block(channels: int | None, blocked: bool) -> None:
    """The children of partitions that have split can be read now."""
    taken_back, recorded = judged(POLICY, TRIED, 8, 16, USELESS, 200.0)[0], Record(4, scaled=200.0, ineffective=200.0)

    history = relieved(taken_back, recorded, channels)

    assert is_blocked(history, recorded, 215.0) is blocked
    assert history.ineffective == int(blocked)
    # a further one that is of no use blocks again
    again = judged(POLICY, replace(history, trial=TRIAL), 8, 20, USELESS, 300.0)[0]
    assert is_blocked(again, replace(recorded, ineffective=300.0), 315.0)


@pytest.mark.parametrize(("generation", "blocked"), [(None, True), (3, True), (2, False)])
def test_an_edit_of_the_spec_ends_the_block(generation: int | None, blocked: bool) -> None:
    """A rate limit was raised, or the sink mended; after a restart the record tells of the block."""
    recorded, history = Record(4, ineffective=200.0, generation=3), History(blocked_until=2000.0, generation=generation)

    assert is_blocked(relieved(history, recorded, 16), recorded, 300.0) is blocked
    assert relieved(history, recorded, 16).generation == 3


def test_a_restart_does_not_end_the_block() -> None:
    recorded = Record(4, scaled=1000.0, ineffective=1000.0)

    assert is_blocked(History(), recorded, 2799.0)
    assert not is_blocked(History(), recorded, 2800.0)
    assert not is_blocked(History(), recorded, 999.0)
