"""The decision against a toy model of a fleet, six hours of each load: a net for changes of the constants.

`python -m tests.support.autoscaling` prints the table of docs/operations.md, with other ways to choose the number.
"""

from __future__ import annotations

import pytest

from ots_tunnel_operator.autoscale.decision import Cause
from ots_tunnel_operator.autoscale.policy import Policy
from tests.support.autoscaling.fleet import Channel
from tests.support.autoscaling.runs import Autoscaler, LagThreshold, Outcome, run


def outcome(load: str, seed: int, policy: Policy | None = None) -> Outcome:
    return run(load, seed, Autoscaler(policy or Policy(), 4), workers=4)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("load", "rescales", "late", "workers"),
    [("steady", 3, 0.01, 7.0), ("sine", 36, 0.03, 8.5), ("bursts", 50, 0.12, 8.5), ("step", 14, 0.06, 7.5)],
)
def test_a_load_is_followed(load: str, seed: int, rescales: int, late: float, workers: float) -> None:
    found = outcome(load, seed)

    assert found.rescales <= rescales
    assert found.late <= late
    assert found.workers <= workers


def test_a_longer_window_down_is_the_answer_to_bursts() -> None:
    short, long = outcome("bursts", 1), outcome("bursts", 1, Policy(down_window=1800))

    assert long.rescales < short.rescales / 2
    assert long.late < short.late


def test_a_threshold_on_the_lag_is_worse() -> None:
    ours = outcome("sine", 1)
    theirs = run("sine", 1, LagThreshold(60, 300), workers=4)

    assert ours.rescales < theirs.rescales
    assert ours.late < theirs.late


def test_one_slow_channel_does_not_end_at_the_maximum() -> None:
    """Half of the load is in a channel that carries less: more workers cannot help."""
    scaler = Autoscaler(Policy(), 4)
    channels = [Channel(0.5, 700.0)] + [Channel(0.5 / 15) for _ in range(15)]

    found = run("steady", 1, scaler, workers=4, channels=channels)

    assert Cause.INEFFECTIVE in {cause for _, cause, _, _ in scaler.changes}
    assert found.workers < 9
    assert found.rescales <= 12
