"""Which looks are compared with one another."""

from __future__ import annotations

import pytest

from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.history import LONGEST_PAUSE, WINDOW_SECONDS, History


@pytest.mark.parametrize(
    ("times", "kept"),
    [
        ((0, 30, 55), (0, 30, 55)),
        ((0, 30, WINDOW_SECONDS + 20), (30, WINDOW_SECONDS + 20)),
        ((0, 30, WINDOW_SECONDS + 31), (30, WINDOW_SECONDS + 31)),
        ((0, 30, LONGEST_PAUSE + 31), (LONGEST_PAUSE + 31,)),
    ],
    ids=["within the window", "one is older", "rare looks", "an absence of the operator"],
)
def test_a_look_is_compared_with_those_of_the_window_or_the_one_before(
    times: tuple[float, ...], kept: tuple[float, ...]
) -> None:
    history = History()
    for time in times:
        history = history.observed(Figures(time, 16, 5.0, 0.5, 1000.0))

    assert tuple(item.time for item in history.figures) == kept
