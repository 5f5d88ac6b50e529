"""When the last worker may go, and when it has to come back (docs/architecture.md rule 18). Pure.

Theory of operation
-------------------
With no worker nothing is read, so nobody tells whether something waits: the consume points stand still, whatever is
written. The operator looks itself, without a client: it reads one page of every channel from its checkpoint and throws
it away (`observe.peek`). That changes nothing at the service, and it tells more than a worker's report: what is not
checkpointed is found again.

    falls asleep    all of these: one worker is left; nothing was read and no row counted for `idle` seconds; since then
                    a look at every channel has found nothing; the retention is known; the end time has not passed
    stays asleep    while none of the following holds
    wakes           something waits to be read; the spec has changed since; a quarter of the stream's retention has
                    passed; the end time has passed; it is not known since when it sleeps, or how long the stream is
                    kept; or for two intervals no look at every channel has succeeded, although the tunnel was described

Where the tunnel itself cannot be described, nothing is started either: whatever stopped the looks stops workers as
well, and the object is not Ready. What is not known never puts an object to sleep.

A quarter of the retention is enough, because the read mark is moved when the last worker goes: it tells the next one
until when everything was read (`assess.read_mark`). The rest is left for starting and catching up.

Example: idleSeconds 1800, peekIntervalSeconds 300, retention 7 days. The last row was stored at 12:00. At 12:30 a look
at all channels finds nothing, and the worker goes. At 15:02 a row is written; the look of 15:05 finds it, and a worker
starts. Had none been written, one would have started 42 hours after 12:30, to move the read mark.
"""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.history import History, Idle
from ots_tunnel_operator.autoscale.peeked import Peeked
from ots_tunnel_operator.autoscale.policy import Policy, Sleep
from ots_tunnel_operator.autoscale.record import Record

#: Share of the stream's retention after which a worker runs, whatever the looks find.
RETENTION_SHARE = 0.25
#: Seconds by which the recorded begin of the sleep may be ahead of the clock: clocks of two replicas differ.
SKEW_SECONDS = 60.0


def is_fresh(sleep: Sleep, peeked: Peeked | None, now: float) -> bool:
    """Whether every channel was looked at within the bound."""
    return peeked is not None and peeked.oldest is not None and now - peeked.oldest <= sleep.bound


def idled(history: History, figures: Figures) -> History:
    """With the time since which nothing was read and no row was counted."""
    is_idle = figures.lag == 0 and figures.rate == 0 and figures.rows is not None and not figures.unsettled
    if not is_idle or figures.missing or figures.copies_base:
        return replace(history, idle=None)
    if history.idle is not None and history.idle.rows == figures.rows:
        return history
    return replace(history, idle=Idle(figures.time, figures.rows or 0))


def is_idle_for_long(policy: Policy, history: History, now: float) -> bool:
    """Whether it is time to look without a client: only what that finds lets the last worker go."""
    return policy.sleep is not None and history.idle is not None and now - history.idle.since >= policy.sleep.idle


def falls_asleep(policy: Policy, record: Record, figures: Figures, history: History) -> str:
    """Why the last worker goes now, in words; empty where it stays.

    Args:
        policy: what the user asks for.
        record: what the status has.
        figures: of this look.
        history: with the idle time of this look (`idled`).
    """
    sleep, idle, peeked, now = policy.sleep, history.idle, figures.peeked, figures.time
    if sleep is None or idle is None or peeked is None or record.desired != 1:
        return ""
    if not is_idle_for_long(policy, history, now) or figures.is_over or not figures.retention:
        return ""
    if peeked.waits or peeked.failure or not is_fresh(sleep, peeked, now) or (peeked.oldest or 0.0) < idle.since:
        return ""
    return (
        f"nothing was read for {now - idle.since:.0f} s (scaleToZero.idleSeconds {sleep.idle:.0f}), and one page of "
        f"each {peeked.part}, read from its checkpoint, is empty"
    )


def looked(history: History, figures: Figures) -> History:
    """With the time of the last look at every channel; the first pass of a process counts as one."""
    oldest = None if figures.peeked is None else figures.peeked.oldest
    first = figures.time if history.looked is None else history.looked
    return replace(history, looked=first if oldest is None else max(first, oldest))


def woken_by(sleep: Sleep, record: Record, figures: Figures, history: History) -> str:
    """Why a worker is needed again, in words; empty where none is.

    Args:
        sleep: what the user allows.
        record: what the status has.
        figures: of this look.
        history: with the time of the last look (`looked`).
    """
    since, peeked, now = record.slept, figures.peeked, figures.time
    if since is None:
        return "the object was changed while no worker ran, or it is not known since when none runs"
    if now < since - SKEW_SECONDS:
        return "no worker runs since a time that lies in the future"
    if not figures.retention:
        return "it is not known for how long the table keeps its stream"
    if now - since >= RETENTION_SHARE * figures.retention:
        return f"no worker has run for a quarter of the {figures.retention:.0f} s for which the table keeps its stream"
    if figures.is_over:
        return "the end time has passed, and workers have to confirm that everything was read"
    if peeked is not None and peeked.waits:
        return f"{peeked.part} {peeked.waits} has something to read"
    blind = now - (now if history.looked is None else history.looked)
    if figures.channels is not None and blind > sleep.bound:
        why = f": {peeked.failure}" if peeked is not None and peeked.failure else ""
        part = "channel" if peeked is None else peeked.part
        return f"for {blind:.0f} s the operator could not look at every {part}{why}"
    return ""
