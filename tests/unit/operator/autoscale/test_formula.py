"""What the figures ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.formula import LEAST_PACE, Load, load, rounded, wish
from ots_tunnel_operator.autoscale.policy import Policy

POLICY = Policy()


def look(time: float, lag: float | None = 0.0, busy: float | None = 0.5, rate: float | None = 100.0) -> Figures:
    return Figures(time, 16, lag, busy, rate)


def loaded(lag: float = 0.0, pace: float = 1.0, busy: float | None = 0.5) -> Load:
    return Load(lag, pace, busy, 100.0, 60.0)


def test_the_example_of_the_module() -> None:
    found = loaded(180.0, 0.8, 0.96)

    assert wish(POLICY, 4, found) == pytest.approx(8.8, abs=0.05)
    assert rounded(POLICY, 4, found, wish(POLICY, 4, found)) == 9


def test_without_a_lag_it_is_the_rule_of_utilisation() -> None:
    assert wish(POLICY, 10, loaded(0.0, 1.0, 0.35)) == pytest.approx(5.0)


@pytest.mark.parametrize(("busy", "workers"), [(0.41, 10), (0.89, 10), (0.39, 6), (0.95, 14)])
def test_inside_the_dead_band_the_number_stays(busy: float, workers: int) -> None:
    found = loaded(busy=busy)

    assert rounded(POLICY, 10, found, wish(POLICY, 10, found)) == workers


def test_with_a_high_target_the_dead_band_ends_below_a_full_worker() -> None:
    policy, found = Policy(utilization=0.9), loaded(busy=0.98)

    assert rounded(policy, 10, found, wish(policy, 10, found)) == 11


def test_while_it_is_behind_nothing_shrinks() -> None:
    found = loaded(61.0, 1.0, 0.1)

    assert rounded(POLICY, 10, found, wish(POLICY, 10, found)) == 10


def test_an_unknown_busy_share_counts_as_full_while_it_is_behind() -> None:
    assert wish(POLICY, 4, loaded(120.0, 1.0, None)) == wish(POLICY, 4, loaded(120.0, 1.0, 1.0))


def test_an_unknown_busy_share_tries_one_worker_less_otherwise() -> None:
    found = loaded(10.0, 1.0, None)

    assert rounded(POLICY, 4, found, wish(POLICY, 4, found)) == 3


def test_the_load_needs_figures_over_some_time() -> None:
    assert load([]) is None
    assert load([look(0.0)]) is None
    assert load([look(0.0), look(15.0)]) is None
    assert load([look(0.0), look(15.0), look(30.0)]) is not None


def test_a_lag_that_was_unknown_at_the_begin_gives_no_pace() -> None:
    assert load([look(0.0, None), look(30.0)]) is None
    assert load([look(0.0), look(30.0, None)]) is None


def test_the_pace_is_that_of_the_lag() -> None:
    found = load([look(0.0, 100.0), look(30.0, 106.0)])

    assert found is not None
    assert found.pace == pytest.approx(0.8)
    assert found.lag == 106.0


def test_a_channel_that_stands_still_does_not_ask_for_everything() -> None:
    found = load([look(0.0, 0.0), look(30.0, 300.0)])

    assert found is not None
    assert found.pace == LEAST_PACE


def test_a_mean_of_what_is_partly_unknown_is_unknown() -> None:
    found = load([look(0.0, busy=None, rate=10.0), look(30.0, busy=0.9, rate=20.0)])

    assert found is not None
    assert (found.busy, found.rate) == (None, 15.0)


@given(st.integers(1, 100), st.floats(0, 1e5), st.floats(0, 1e5), st.floats(LEAST_PACE, 10), st.floats(0, 1))
def test_the_wish_grows_with_the_lag(workers: int, lag: float, more: float, pace: float, busy: float) -> None:
    low, high = (wish(POLICY, workers, loaded(each, pace, busy)) for each in (lag, lag + more))

    assert low <= high


@given(st.integers(1, 100), st.floats(0, 1e5), st.floats(0, 1), st.floats(0, 1))
def test_the_wish_grows_with_the_busy_share(workers: int, lag: float, busy: float, other: float) -> None:
    low, high = (wish(POLICY, workers, loaded(lag, 1.0, each)) for each in sorted((busy, other)))

    assert low <= high
