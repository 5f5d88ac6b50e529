"""How long a change takes, and how long the next one waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.history import History
from ots_tunnel_operator.autoscale.policy import Policy
from ots_tunnel_operator.autoscale.record import Record
from ots_tunnel_operator.autoscale.settling import is_cooling, learned, pause

SETTLED = Figures(160.0, 16, 0.0, 0.5, 100.0)
CHANGED = Record(4, scaled=100.0)


def test_at_first_it_is_three_heartbeats() -> None:
    assert pause(Policy(heartbeat=10), History()) == 30.0


def test_the_time_until_the_fleet_was_settled_is_learned_once() -> None:
    history = learned(History(), CHANGED, SETTLED)

    assert pause(Policy(), history) == 60.0
    assert learned(history, CHANGED, replace(SETTLED, time=400.0)) == history


def test_the_next_change_counts_half() -> None:
    history = learned(History(), CHANGED, SETTLED)

    history = learned(history, Record(6, scaled=200.0), replace(SETTLED, time=300.0))

    assert pause(Policy(), history) == 80.0


def test_a_fast_change_does_not_shorten_the_pause() -> None:
    assert pause(Policy(), learned(History(), CHANGED, replace(SETTLED, time=105.0))) == 30.0


@pytest.mark.parametrize("time", [99.0, 500.0])
def test_a_time_that_nobody_has_watched_is_not_learned(time: float) -> None:
    history = learned(History(), CHANGED, replace(SETTLED, time=time))

    assert history.settling is None
    assert history.settled == 100.0


def test_nothing_is_learned_while_channels_move_or_without_a_change() -> None:
    assert learned(History(), CHANGED, replace(SETTLED, unsettled="channels move")) == History()
    assert learned(History(), Record(4), SETTLED) == History()


def test_nothing_is_learned_while_the_service_does_not_answer() -> None:
    """Whether channels move is not known then."""
    assert learned(History(), CHANGED, replace(SETTLED, channels=None, lag=None)) == History()


@pytest.mark.parametrize(
    ("scaled", "now", "cooling"),
    [(None, 0.0, False), (100.0, 129.0, True), (100.0, 130.0, False), (100.0, 99.0, False)],
)
def test_the_pause_after_a_change(scaled: float | None, now: float, *, cooling: bool) -> None:
    """A change in the future is that of a clock which was set back since: it holds nothing."""
    assert is_cooling(Policy(), History(), Record(4, scaled), now) is cooling
