"""The smallest and the largest useful number of workers."""

from __future__ import annotations

from ots_tunnel_operator.autoscale.limit import Limit
from ots_tunnel_operator.autoscale.policy import Policy


def within(policy: Policy, workers: int, channels: int | None) -> int:
    """The number within minReplicas and maxReplicas; never 0.

    A worker without a channel has nothing to do: fewer channels than minReplicas lower it, and unknown ones leave it.
    """
    low = 1 if channels is None else max(1, min(policy.min_workers, channels))
    return max(low, min(policy.max_workers, workers))


def capped(policy: Policy, channels: int, workers: int) -> tuple[int, Limit]:
    """The number that is useful, and what limits it."""
    most = max(1, min(policy.max_workers, channels))
    if workers > most:
        return most, Limit.CHANNELS if channels < policy.max_workers else Limit.MAX
    if workers < policy.min_workers:
        return min(policy.min_workers, most), Limit.MIN
    return max(1, workers), Limit.NONE
