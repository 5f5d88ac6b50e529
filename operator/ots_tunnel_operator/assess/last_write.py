"""When the last write of a snapshot can take effect: the gates that consumers of the stream wait for. Pure.

A task sends nothing later than `split deadline - D` after its start, and a request that was sent takes effect within D
(docs/architecture.md rule 4). `split deadline + D` after the last possible start of a task is therefore always safe.
Only a driver starts tasks, at the latest CUT_OFF_SECONDS after its pod was deleted, where its node is lost. So once it
has ended, this bounds what executors write, whatever their pods show: one on a lost node is Running for as long as the
node is away, or Pending where it was lost early, and one without a node stays Pending without end.

D alone is enough after the last end, of the application and its pods, where every pod has a terminated container status
with its time. An executor that was cut off from its driver may outlive the application, and write. It may also outlive
its pod's object and all that tells of it: the Spark operator lists only executors with a number up to 1,000, so that a
copy with as many has no short wait, and counts attempts anew
after an edit of the application. Hence the copy's only run is one whose application was never edited, was submitted
once, and was created with the record of the copy, which outlives every application and every object.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ots_tunnel.snapshot.record import CUT_OFF_SECONDS, SnapshotProgress
from ots_tunnel_operator.assess.spark.application_state import Application
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import SparkPod

#: Seconds after the start of a copy within which its first application is created; no task runs as early as that.
FIRST_SECONDS = 10.0

#: Number of an executor from which on the Spark operator may not list it (its `MaxTrackedExecutorPerApp`).
MAX_LISTED = 1000
_EXECUTOR = re.compile(r"\bexec-([0-9]+)$")


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Bounds of a snapshot's writes, seconds."""

    split: float
    """Time after its start by which a task's last write is over: `splits.deadlineSeconds` of the driver's document."""
    write: float
    """D: longest time from sending a write to its effect."""


def find_closed_gate(
    app: Application | None,
    progress: SnapshotProgress,
    pods: Sequence[SparkPod],
    *,
    now: float,
    deadlines: Deadlines,
    began: float | None = None,
) -> str | None:
    """The first gate that holds consumers back: what could still write an old row; None where nothing can.

    Args:
        app: the application; None where it was deleted.
        progress: a complete record.
        pods: driver and executor pods that exist now.
        now: seconds since 1970.
        deadlines: bounds of the writes.
        began: creation of the record of this copy, or its start, whichever is earlier; None where it is not known.
    """
    if app is not None and not app.state.terminal:
        return f"the SparkApplication has not ended ({app.state or 'not picked up'})"
    starting = sorted(pod.name for pod in pods if pod.is_alive and not pod.is_executor)
    if starting:
        return f"pod {starting[0]} has not ended"
    safe = last_write(app, progress, pods, deadlines, began=began)
    return f"a write already sent may take effect until {timestamp(safe)}" if now < safe else None


def last_write(
    app: Application | None,
    progress: SnapshotProgress,
    pods: Sequence[SparkPod],
    deadlines: Deadlines,
    *,
    began: float | None = None,
) -> float:
    """Time after which no write of the snapshot can take effect, seconds since 1970."""
    # No task starts after the write that recorded the last split: it replaces an end that was not recorded.
    recorded = progress.updated or 0.0
    longest = CUT_OFF_SECONDS + deadlines.split + deadlines.write
    if app is None or app.ended is None:
        return recorded + longest
    ends = {pod.name: pod.ended for pod in pods if pod.ended is not None}
    ended = max(recorded, app.ended, *ends.values())
    known = app.pods | {pod.name for pod in pods}
    if not app.pods or not known <= ends.keys() or _may_be_unlisted(known):
        return ended + longest
    # Pods of earlier attempts are deleted: their tasks started before the last submission. So are those of an earlier
    # application of this copy, which somebody has deleted, alone or with its object.
    is_unchanged = app.attempts <= 1 and app.generation <= 1
    is_first = is_unchanged and (began is None or app.created <= began + FIRST_SECONDS)
    earlier = 0.0 if is_first else (ended if app.submitted is None else app.submitted) + longest
    return max(ended + deadlines.write, earlier)


def _may_be_unlisted(pods: Collection[str]) -> bool:
    """Whether there were so many executors that the application may not list every one."""
    numbers = [int(found[1]) for found in map(_EXECUTOR.search, pods) if found is not None]
    return len(pods) >= MAX_LISTED or max(numbers, default=0) >= MAX_LISTED
