"""Stabilisation: a number counts when every recommendation of a window agrees to it (the rule of Kubernetes' HPA)."""

from __future__ import annotations

from itertools import pairwise

from ots_tunnel_operator.autoscale.history import History
from ots_tunnel_operator.autoscale.policy import Policy

#: Largest share of the window down without a recommendation at a time, and its least seconds: looks may be rare.
UNKNOWN_SHARE, UNKNOWN_SECONDS = 0.5, 60.0


def stabilised(policy: Policy, history: History, workers: int, now: float) -> int:
    """The smallest recommendation of the window up, the largest of the window down; else the present number.

    A window counts only when recommendations reach back to its begin: after a restart nothing changes before. That of
    the way down must have no large gap either: during a rollout, which may take longer than the window, nobody knows
    what the load asks for, and a lull at its end is no reason to take workers away.
    """
    most_cautious_up = _within(history, now, policy.up_window)
    if most_cautious_up and min(most_cautious_up) > workers:
        return min(most_cautious_up)
    most_cautious_down = _within(history, now, policy.down_window)
    if most_cautious_down and max(most_cautious_down) < workers and not _has_gap(history, now, policy.down_window):
        return max(most_cautious_down)
    return workers


def _has_gap(history: History, now: float, window: float) -> bool:
    """Whether too much of a window is without a recommendation."""
    times = [now - window, *(item.time for item in history.recommendations if item.time >= now - window), now]
    longest = max(later - earlier for earlier, later in pairwise(times))
    return longest > max(UNKNOWN_SECONDS, UNKNOWN_SHARE * window)


def _within(history: History, now: float, window: float) -> list[int]:
    """The recommendations of the window; none where they do not reach back to its begin."""
    found = history.recommendations
    if not found or found[0].time > now - window:
        return []
    return [item.workers for item in found if item.time >= now - window]
