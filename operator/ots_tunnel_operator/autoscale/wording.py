"""The figures of a decision in words: status.autoscaling.lastDecision.message and the message of its event."""

from __future__ import annotations

from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.formula import Load
from ots_tunnel_operator.autoscale.history import Trial
from ots_tunnel_operator.autoscale.policy import Policy


def load_words(policy: Policy, workers: int, found: Load, wanted: float) -> str:
    """What the formula was given and what it gave."""
    busy = "unknown" if found.busy is None else f"{found.busy:.0%}"
    return (
        f"lag {found.lag:.0f} s (target {policy.target_lag:.0f} s), {found.pace:.2f} s of changes consumed a second, "
        f"{workers} workers busy {busy} (target {policy.utilization:.0%}): {max(0.0, wanted):.1f} workers are needed"
    )


def base_words(workers: int, channels: int) -> str:
    """Why a base phase gets workers."""
    return f"existing rows are copied: {channels} channels are left for {workers} workers, and more finish sooner"


def useless_words(trial: Trial, found: Load, figures: Figures, words: str) -> str:
    """Why a scale-up is taken back."""
    slowest = f"; the slowest channel is {figures.slowest}" if figures.slowest else ""
    return (
        f"{trial.after} workers process {found.rate or 0.0:.0f} rows/s, {trial.before} processed {trial.rate:.0f}: "
        f"more of them do not help{slowest}; see what slows it, or the sink ({words})"
    )
