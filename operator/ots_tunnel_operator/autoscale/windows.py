"""Stabilisation: a number counts when every recommendation of a window agrees to it (the rule of Kubernetes' HPA)."""

from __future__ import annotations

from ots_tunnel_operator.autoscale.history import History
from ots_tunnel_operator.autoscale.policy import Policy


def stabilised(policy: Policy, history: History, workers: int, now: float) -> int:
    """The smallest recommendation of the window up, the largest of the window down; else the present number.

    A window counts only when recommendations cover the whole of it: after a restart nothing changes before.
    """
    most_cautious_up = _within(history, now, policy.up_window)
    if most_cautious_up and min(most_cautious_up) > workers:
        return min(most_cautious_up)
    most_cautious_down = _within(history, now, policy.down_window)
    if most_cautious_down and max(most_cautious_down) < workers:
        return max(most_cautious_down)
    return workers


def _within(history: History, now: float, window: float) -> list[int]:
    """The recommendations of the window; none where they do not reach back to its begin."""
    found = history.recommendations
    if not found or found[0].time > now - window:
        return []
    return [item.workers for item in found if item.time >= now - window]
