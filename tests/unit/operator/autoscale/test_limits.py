"""Bounds, windows, steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel_operator.autoscale.bounds import capped, within
from ots_tunnel_operator.autoscale.history import History, Recommendation
from ots_tunnel_operator.autoscale.limit import Limit
from ots_tunnel_operator.autoscale.policy import Policy
from ots_tunnel_operator.autoscale.steps import stepped
from ots_tunnel_operator.autoscale.windows import stabilised

POLICY = Policy(min_workers=2, max_workers=10)


@pytest.mark.parametrize(
    ("channels", "workers", "found"),
    [
        (16, 5, (5, Limit.NONE)),
        (16, 11, (10, Limit.MAX)),
        (10, 11, (10, Limit.MAX)),
        (6, 11, (6, Limit.CHANNELS)),
        (6, 0, (2, Limit.MIN)),
        (1, 0, (1, Limit.MIN)),
        (1, 5, (1, Limit.CHANNELS)),
        (0, 5, (1, Limit.CHANNELS)),
    ],
)
def test_what_is_useful(channels: int, workers: int, found: tuple[int, Limit]) -> None:
    assert capped(POLICY, channels, workers) == found


@pytest.mark.parametrize(
    ("channels", "workers", "found"),
    [(16, 1, 2), (16, 11, 10), (16, 5, 5), (1, 1, 1), (1, 11, 10), (None, 1, 1), (None, 0, 1), (None, 11, 10)],
)
def test_what_the_user_bounds(channels: int | None, workers: int, found: int) -> None:
    assert within(POLICY, workers, channels) == found


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 20), st.integers(0, 20))
def test_a_useful_number_is_within_the_bounds(channels: int, workers: int, least: int, more: int) -> None:
    """Otherwise the two would undo each other in every look."""
    policy = Policy(min_workers=least, max_workers=least + more)

    found = capped(policy, channels, workers)[0]

    assert within(policy, found, channels) == found


@pytest.mark.parametrize(
    ("workers", "wanted", "found"),
    [(1, 10, 3), (2, 10, 4), (5, 10, 10), (5, 16, 10), (5, 4, 4), (5, 1, 3), (3, 1, 2), (2, 1, 1), (4, 4, 4)],
)
def test_a_step_doubles_or_halves_at_most(workers: int, wanted: int, found: int) -> None:
    assert stepped(Policy(), workers, wanted) == found


def remembered(*pairs: tuple[float, int]) -> History:
    return History(recommendations=tuple(Recommendation(*pair) for pair in pairs))


def test_up_takes_the_smallest_of_its_window() -> None:
    history = remembered((0, 1), (50, 9), (65, 7), (80, 8), (95, 12))

    assert stabilised(Policy(), history, 4, 95.0) == 7


def test_one_low_recommendation_keeps_the_number() -> None:
    assert stabilised(Policy(), remembered((0, 9), (50, 9), (65, 4), (95, 9)), 4, 95.0) == 4


def test_down_takes_the_largest_of_its_window() -> None:
    history = remembered((0, 9), (200, 3), (400, 5), (600, 4), (790, 2))

    assert stabilised(Policy(), history, 8, 795.0) == 5


@pytest.mark.parametrize(
    ("pairs", "found"),
    [
        (((0, 9), (480, 2), (790, 2)), 8),
        (((0, 9), (510, 2), (790, 2)), 8),
        (((0, 9), (480, 2), (600, 2), (790, 2)), 2),
    ],
)
def test_down_needs_to_know_most_of_its_window(pairs: tuple[tuple[float, int], ...], found: int) -> None:
    """Half of it at most may be without a recommendation, at its begin as well."""
    assert stabilised(Policy(), remembered(*pairs), 8, 795.0) == found


def test_a_short_window_down_is_covered_by_looks_that_are_rare() -> None:
    assert stabilised(Policy(down_window=30), remembered((0, 2), (50, 2), (95, 2)), 4, 95.0) == 2


@pytest.mark.parametrize("pairs", [(), ((60, 9), (95, 9)), ((60, 1), (95, 1))])
def test_a_window_that_is_not_covered_holds(pairs: tuple[tuple[float, int], ...]) -> None:
    assert stabilised(Policy(), remembered(*pairs), 4, 95.0) == 4


def test_a_window_of_nothing_follows_at_once() -> None:
    assert stabilised(Policy(up_window=0, down_window=0), remembered((95, 9)), 4, 95.0) == 9
    assert stabilised(Policy(up_window=0, down_window=0), remembered((95, 2)), 4, 95.0) == 2


def test_the_history_keeps_one_recommendation_at_the_begin_of_the_longest_window() -> None:
    history = History()
    for time in range(0, 3000, 15):
        history = history.recommended(float(time), 3, 600.0)

    assert history.recommendations[0].time == 2385.0
    assert len(history.recommendations) == 41
