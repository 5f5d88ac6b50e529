"""The largest change at once."""

from __future__ import annotations

import math

from ots_tunnel_operator.autoscale.policy import Policy

#: Workers that a scale-up may always add, so that one worker becomes three.
LEAST_GROWTH = 2


def stepped(policy: Policy, workers: int, wanted: int) -> int:
    """The number one step from `workers` towards `wanted`; a step is at least one worker."""
    most = workers + max(LEAST_GROWTH, math.floor(workers * policy.up_step))
    least = workers - max(1, math.floor(workers * policy.down_step))
    return max(least, min(most, wanted))
