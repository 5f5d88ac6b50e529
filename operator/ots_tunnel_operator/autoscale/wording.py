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
    """Why a base phase gets workers, or needs fewer."""
    text = f"existing rows are copied: {channels} channels are left for {workers} workers"
    return f"{text}, and more finish sooner" if channels > workers else text


def narrowed_words(policy: Policy, asked: int, recommended: int, stable: int, after: int) -> str:
    """What lies between the number that the load asks for and the one that is decided; empty where they are one.

    Args:
        policy: what the user asks for.
        asked: what the load asks for.
        recommended: of it, what bounds and channels allow.
        stable: what the whole window agrees to.
        after: what one step reaches.
    """
    found = []
    if recommended != asked:
        found.append(f"{recommended} within minReplicas, maxReplicas and the {policy.part}s")
    if stable < recommended:
        found.append(f"the fewest within {policy.up_window:.0f} s were {stable}")
    if stable > recommended:
        found.append(f"the most within {policy.down_window:.0f} s were {stable}")
    if after != stable:
        found.append(f"one step goes to {after}")
    return "".join(f"; {part}" for part in found)


def useless_words(policy: Policy, trial: Trial, found: Load, figures: Figures, words: str) -> str:
    """Why a scale-up is taken back."""
    slowest = f"; the slowest {policy.part} is {figures.slowest}" if figures.slowest else ""
    return (
        f"{trial.after} workers process {found.rate or 0.0:.0f} rows/s, {trial.before} processed {trial.rate:.0f}: "
        f"more of them do not help{slowest}; see what slows it, or the sink ({words})"
    )
