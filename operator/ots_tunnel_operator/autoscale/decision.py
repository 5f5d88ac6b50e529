"""The decision about the number of workers.

Theory of operation
-------------------
`decide` is a function of the policy, what the status records, the figures of one look and what is remembered. It
returns a number, what limits it, the change to be made, if any, and what is to be remembered. In order:

    0  sleep           with no worker only what wakes it counts (`asleep`)
    1  bounds          a number outside minReplicas and maxReplicas is corrected at once, whatever else is known
    2  pace            between two evaluations the last result stands
    3  figures         an unknown lag holds, and so does a sink that stores nothing while changes are followed; figures
                       of a fleet that is being changed are not used
    4  effect          a scale-up that did not help is taken back
    5  formula         what the load asks for, with dead band and backlog mode (`formula`)
    6  bounds          minReplicas, maxReplicas, channels
    7  window          up: the smallest number of the last 45 s; down: the largest of the last 600 s
    8  step            at most doubled (or two more), at most halved
    9  guards          no change while the last one settles, none up while scale-ups are of no use or pods are missing

While existing rows are copied there is no lag, and the work is finite: as many workers as can have a channel finish it
soonest, at the same cost.

The last worker goes only where the user allows it (`asleep`), before step 5. Otherwise never 0, never more than
min(maxReplicas, channels) by a change of its own, and nothing on unknown figures.

Example: 4 workers are 96 % busy and 143 s behind, and the lag grows. The formula asks for 8; for 45 s every evaluation
does; the decision is `Change(4, 8, Cause.BACKLOG, "lag 143 s ...")`. The pods start, channels move (Rebalancing), 62 s
later every channel has a worker, and figures count again.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from ots_tunnel_operator.autoscale.asleep import falls_asleep, idled, is_idle_for_long, looked, woken_by
from ots_tunnel_operator.autoscale.bounds import capped, within
from ots_tunnel_operator.autoscale.effect import is_blocked, judged, relieved
from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.formula import Load, load, rounded, wish
from ots_tunnel_operator.autoscale.history import History, Shown, Trial
from ots_tunnel_operator.autoscale.limit import Limit
from ots_tunnel_operator.autoscale.policy import Policy, Sleep
from ots_tunnel_operator.autoscale.record import Record
from ots_tunnel_operator.autoscale.settling import is_cooling, learned
from ots_tunnel_operator.autoscale.steps import stepped
from ots_tunnel_operator.autoscale.windows import stabilised
from ots_tunnel_operator.autoscale.wording import base_words, load_words, narrowed_words, useless_words


class Cause(enum.StrEnum):
    """Why the number is changed; the values are reasons of status.autoscaling.lastDecision and of events."""

    BOUNDS = "Bounds"
    BACKLOG = "Backlog"
    BUSY = "Busy"
    IDLE = "Idle"
    BASE_DATA = "BaseData"
    FEWER_CHANNELS = "FewerChannels"
    INEFFECTIVE = "Ineffective"
    ASLEEP = "Asleep"
    WOKEN = "Woken"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the number of workers; the message has the figures that it came from."""

    before: int
    after: int
    cause: Cause
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What is wanted now, why, and what to remember."""

    desired: int
    limit: Limit
    history: History
    recommended: int | None = None
    """What the load asks for within the bounds; None before it is known."""
    message: str = ""
    """The figures of the last evaluation in words; empty before the first."""
    change: Change | None = None

    @property
    def is_blind(self) -> bool:
        """Whether the lag has been unknown for so long that the metrics count as unavailable."""
        return self.history.is_blind


def decide(policy: Policy, record: Record, figures: Figures, history: History) -> Decision:
    """The number of workers from now on; see the module's description.

    Args:
        policy: what the user asks for.
        record: what the status has; its number is the one that the fleet is to have now.
        figures: of this look.
        history: as the last decision returned it; `History()` at first.
    """
    workers, now = record.desired, figures.time
    if not workers and policy.sleep is not None:
        return _asleep(policy, policy.sleep, record, figures, history)
    if (bound := within(policy, workers, figures.channels)) != workers:
        edges = f"minReplicas {policy.min_workers}, maxReplicas {policy.max_workers}"
        return Decision(bound, Limit.NONE, history.changed(), change=Change(workers, bound, Cause.BOUNDS, edges))
    history = relieved(learned(history, record, figures), record, figures.channels)
    if not history.is_due(now):
        return _held(workers, history)
    history = idled(replace(history, evaluated=now), figures)
    if figures.channels is None or (figures.lag is None and not figures.copies_base):
        history = history.missed()
        # a number of the past is none that the load asks for
        known = None if history.is_blind else history.shown.recommended
        return _shown(workers, history, Limit.METRICS_UNAVAILABLE, known)
    if figures.unsettled:
        return _shown(workers, history.unsettled(), Limit.REBALANCING, history.shown.recommended, figures.unsettled)
    history = history.observed(figures)
    if figures.copies_base:
        words = base_words(workers, figures.channels)
        source = _Asked(now, words, missing=figures.missing)
        return _limited(policy, record, figures.channels, history, policy.max_workers, source)
    return _followed(policy, record, figures, figures.channels, history)


def _followed(policy: Policy, record: Record, figures: Figures, channels: int, history: History) -> Decision:
    """The decision by the load of the last minute, once there are figures of so long."""
    workers, now = record.desired, figures.time
    found = load(history.figures)
    if found is None:
        # what was shown before still is the best that is known
        known = history.shown.recommended
        limit = Limit.STABILIZATION if known is None else history.shown.limit
        return _shown(workers, history, limit, known)
    if found.stands_still(policy):
        # an outage is no evidence against the scale-up before it
        history = replace(history, trial=None)
        return _shown(workers, history, Limit.NOT_PROGRESSING, history.shown.recommended)
    if words := falls_asleep(policy, record, figures, history):
        change = Change(workers, 0, Cause.ASLEEP, words)
        return Decision(0, Limit.NONE, history.stopped(), 0, words, change)
    if figures.missing:
        # workers that never ran are no evidence against the scale-up that asked for them
        history = replace(history, trial=None)
    history, useless = judged(policy, history, workers, channels, found, now)
    working = workers - figures.missing
    wanted = wish(policy, working, found)
    words = load_words(policy, working, found, wanted)
    if useless is not None and (before := within(policy, useless.before, channels)) < workers:
        words = useless_words(policy, useless, found, figures, words)
        history = replace(history.changed(), shown=Shown(workers, Limit.INEFFECTIVE, words))
        change = Change(workers, before, Cause.INEFFECTIVE, words)
        return Decision(before, Limit.INEFFECTIVE, history, workers, words, change)
    asked = rounded(policy, working, found, wanted, figures.missing)
    decision = _limited(policy, record, channels, history, asked, _Asked(now, words, found, figures.missing))
    is_unseen = figures.peeked is not None and figures.peeked.failure and is_idle_for_long(policy, history, now)
    if not is_unseen or decision.change is not None or workers != 1:
        return decision
    return _shown(workers, decision.history, Limit.PEEK_FAILED, decision.recommended, decision.message)


def _asleep(policy: Policy, sleep: Sleep, record: Record, figures: Figures, history: History) -> Decision:
    """With no worker there are no figures of workers: what wakes it, or nothing."""
    history = looked(history, figures)
    words = woken_by(sleep, record, figures, history)
    if not words:
        return _shown(0, history, Limit.NONE, 0)
    workers = within(policy, 1, figures.channels)
    change = Change(0, workers, Cause.WOKEN, words)
    return Decision(workers, Limit.NONE, history.stopped(), None, words, change)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Where a recommendation comes from; without a load it is that of the base phase."""

    time: float
    words: str
    load: Load | None = None
    missing: int = 0


def _held(workers: int, history: History) -> Decision:
    shown = history.shown
    return Decision(workers, shown.limit, history, shown.recommended, shown.message)


def _shown(workers: int, history: History, limit: Limit, recommended: int | None, message: str = "") -> Decision:
    """Nothing changes, for this reason."""
    return _held(workers, replace(history, shown=Shown(recommended, limit, message)))


def _limited(policy: Policy, record: Record, channels: int, history: History, asked: int, source: _Asked) -> Decision:
    """The decision for what the load asks for, after bounds, window, step and guards."""
    workers, now = record.desired, source.time
    recommended, bound = capped(policy, channels, asked)
    history = history.recommended(now, recommended, max(policy.up_window, policy.down_window))
    stable = stabilised(policy, history, workers, now)
    target = stepped(policy, workers, stable)
    limit = bound
    if target != stable:
        limit = Limit.STEP
    elif stable != recommended:
        limit = Limit.STABILIZATION
    if target > workers and source.missing:
        # those that were asked for do not start either
        target, limit = workers, Limit.REBALANCING
    if target > workers and is_blocked(history, record, now):
        target, limit = workers, Limit.INEFFECTIVE
    # one scale-up that is not known to help is enough
    is_doubtful = target > workers and history.trial is not None
    if is_doubtful or (target != workers and is_cooling(policy, history, record, now)):
        target, limit = workers, Limit.COOLDOWN
    history = replace(history, shown=Shown(recommended, limit, source.words))
    if target == workers:
        return _held(workers, history)
    rate = source.load.rate if source.load is not None else None
    is_trial = target > workers and bool(rate) and source.load is not None and source.load.lag > policy.target_lag
    trial = Trial(now, workers, target, rate or 0.0) if is_trial else None
    words = source.words + narrowed_words(policy, asked, recommended, stable, target)
    change = Change(workers, target, _cause(policy, workers, target, bound, source.load), words)
    return Decision(target, limit, history.changed(trial), recommended, source.words, change)


def _cause(policy: Policy, workers: int, target: int, bound: Limit, found: Load | None) -> Cause:
    if target < workers:
        return Cause.FEWER_CHANNELS if bound is Limit.CHANNELS else Cause.IDLE
    if found is None:
        return Cause.BASE_DATA
    return Cause.BACKLOG if found.lag > policy.target_lag else Cause.BUSY
