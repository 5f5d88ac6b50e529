"""How many workers the figures ask for.

    need      = (b / v) * (1 / rho + max(0, L - L*) / T)
    workers   = ceil(W * need)

W workers, b their busy share, v how many seconds of changes they consume in a second (1 keeps pace), L lag, L* target
lag, T time to catch up, rho target utilisation. Flink's autoscaler has the same three terms in rows; here both sides
are divided by the rate of new rows, because the service tells how old the oldest change is, and not how many wait.

Example: 4 workers are 96 % busy, consume 0.8 s a second and are 180 s behind, 120 s more than the target of 60 s:
4 * 1.2 * (1.43 + 0.4) = 8.8, so 9. Without a lag v is 1, and the rule is that of utilisation, W * b / rho.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.history import LEAST_SECONDS
from ots_tunnel_operator.autoscale.policy import Policy

#: Least seconds of changes consumed in a second that count: below it a channel stands still, which no number of workers
#: explains. It also bounds the growth that one look can ask for.
LEAST_PACE = 0.25
#: Edges of the dead band, as multiples of the target utilisation: 0.4 and 0.9 with the default of 0.7.
DEAD_BAND = (4 / 7, 9 / 7)
#: Highest edge of the dead band: above it a worker has no reserve, whatever its target.
FULL = 0.97


@dataclass(frozen=True, slots=True)
class Load:
    """Means over the window; `busy` None is unknown."""

    lag: float
    pace: float
    busy: float | None
    rate: float | None
    span: float
    """Seconds that the figures cover."""
    is_still: bool = False
    """Whether no row was stored in the last two looks."""

    def stands_still(self, policy: Policy) -> bool:
        """Whether rows wait and none is stored: the sink is away, and more workers would wait for it as well."""
        return self.lag > policy.target_lag and self.is_still


def load(figures: Sequence[Figures]) -> Load | None:
    """The load over the figures of a settled fleet, the newest last; None while they cover too little time."""
    if not figures:
        return None
    first, last = figures[0], figures[-1]
    span = last.time - first.time
    if span < LEAST_SECONDS or first.lag is None or last.lag is None:
        return None
    return Load(
        lag=last.lag,
        pace=max(LEAST_PACE, 1.0 - (last.lag - first.lag) / span),
        busy=_mean([item.busy for item in figures]),
        rate=_mean([item.rate for item in figures]),
        span=span,
        is_still=all(item.rate == 0 for item in figures[-2:]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def wish(policy: Policy, workers: int, found: Load) -> float:
    """Workers that the load asks for, not rounded.

    Without a known busy share it counts as 1 while the lag is above its target; below that one worker less is tried.
    """
    behind = max(0.0, found.lag - policy.target_lag)
    if found.busy is None and not behind:
        return workers - 1.0
    busy = 1.0 if found.busy is None else found.busy
    return workers * busy / found.pace * (1.0 / policy.utilization + behind / policy.catch_up)


def rounded(policy: Policy, workers: int, found: Load, wanted: float, missing: int = 0) -> int:
    """The wish in whole workers: the present number in the dead band, and never fewer while the lag is too large.

    Args:
        policy: what the user asks for.
        workers: those that work.
        found: their load.
        wanted: the wish.
        missing: those that should work and do not; while the lag is too large, they stay asked for.
    """
    if found.lag <= policy.target_lag and found.busy is not None and _is_near(policy, found.busy / found.pace):
        return workers
    # a wish of 2.0000001 is one of 2
    whole = math.ceil(wanted - 1e-6)
    return max(whole, workers + missing) if found.lag > policy.target_lag else whole


def _is_near(policy: Policy, busy: float) -> bool:
    low, high = (edge * policy.utilization for edge in DEAD_BAND)
    return low <= busy <= min(high, FULL)
