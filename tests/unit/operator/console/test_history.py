"""The lag of the last hour, in memory."""

from __future__ import annotations

from ots_tunnel_operator.console.history import KEPT, LagHistory

ONE, OTHER = ("shop", "orders-copy"), ("lake", "orders-copy")


def test_samples_are_in_their_order_and_unknown_is_not_zero() -> None:
    history = LagHistory()
    for lag in (0, None, 12):
        history.add({ONE: lag})

    assert history.of(ONE) == [0, None, 12]
    assert history.of(OTHER) == []


def test_an_hour_is_kept_and_no_more() -> None:
    history = LagHistory()
    for lag in range(KEPT + 5):
        history.add({ONE: lag})

    assert history.of(ONE) == list(range(5, KEPT + 5))


def test_a_lag_of_centuries_is_kept_as_the_largest_one() -> None:
    history = LagHistory()
    history.add({ONE: 2**40})

    assert history.of(ONE) == [2**31 - 1]


def test_an_object_that_is_gone_is_forgotten() -> None:
    history = LagHistory()
    history.add({ONE: 1, OTHER: 2})
    history.add({OTHER: 3})
    history.add({ONE: 4, OTHER: 5})

    assert history.of(ONE) == [4]
    assert history.of(OTHER) == [2, 3, 5]


def test_what_could_not_be_sampled_is_a_gap() -> None:
    history = LagHistory()
    history.add({ONE: 1}, missed=3)
    history.add({ONE: 2, OTHER: 9}, missed=2)

    assert history.of(ONE) == [1, None, None, 2]
    assert history.of(OTHER) == [9]

    history.add({ONE: 3}, missed=10**9)

    assert history.of(ONE) == [None] * (KEPT - 1) + [3]
