"""How long a fleet needs after a change until every channel has a worker again: learned, and waited for."""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.history import History
from ots_tunnel_operator.autoscale.policy import Policy
from ots_tunnel_operator.autoscale.record import Record

#: Longest time that is learned, seconds: what takes longer waits for something else than channels.
MOST_SECONDS = 300.0


def learned(history: History, record: Record, figures: Figures) -> History:
    """With the time of the last change, where the fleet is found settled for the first time after it.

    The mean of new and old: one slow start of a pod does not decide for good.
    """
    is_known = figures.channels is not None and not figures.unsettled
    if not is_known or record.scaled is None or history.settled == record.scaled:
        return history
    took = figures.time - record.scaled
    if not 0 <= took <= MOST_SECONDS:
        # the operator was away, or the clock was set
        return replace(history, settled=record.scaled)
    known = took if history.settling is None else (took + history.settling) / 2
    return replace(history, settled=record.scaled, settling=known)


def pause(policy: Policy, history: History) -> float:
    """Seconds after a change before the next one."""
    return max(policy.least_settling, history.settling or 0.0)


def is_cooling(policy: Policy, history: History, record: Record, now: float) -> bool:
    """Whether the last change is too recent for another one; a time in the future says nothing."""
    return record.scaled is not None and 0 <= now - record.scaled < pause(policy, history)
