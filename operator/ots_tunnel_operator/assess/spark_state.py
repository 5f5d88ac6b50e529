"""Reading a snapshot's state: what the application, its record of progress and its pods prove. Pure.

Consumers of the stream may start only when nothing can write old rows any more (docs/architecture.md 3, snapshot
before stream, point 3). A task sends nothing later than splitDeadline - D after its start, and what it sends takes
effect within D, so `splitDeadline + D` after the last moment at which a task can have started always is enough;
`D` alone is enough
where every pod is seen to have terminated.

States of an application: docs/architecture.md 6.4.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ots_tunnel.snapshot.record import SnapshotProgress, read_progress
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world import SparkPod

#: Longest message taken over from the Spark operator, whose own may be a stack trace of 10 kB.
MAX_MESSAGE = 256
#: Pods in these phases may still write.
_LIVE_PHASES = frozenset({"Pending", "Running", "Unknown"})
_TELLING = re.compile(r"exception|error|denied|forbidden|failed|refused|not found", re.IGNORECASE)


class AppState(enum.StrEnum):
    """What a SparkApplication says of itself; values are the Spark operator's own."""

    NEW = ""
    SUBMITTED = "SUBMITTED"
    RUNNING = "RUNNING"
    SUBMISSION_FAILED = "SUBMISSION_FAILED"
    FAILING = "FAILING"
    SUCCEEDING = "SUCCEEDING"
    PENDING_RERUN = "PENDING_RERUN"
    FAILED = "FAILED"
    COMPLETED = "COMPLETED"
    INVALIDATING = "INVALIDATING"
    SUSPENDING = "SUSPENDING"
    SUSPENDED = "SUSPENDED"
    RESUMING = "RESUMING"
    UNKNOWN = "UNKNOWN"

    @property
    def terminal(self) -> bool:
        """Nothing is submitted again by the Spark operator."""
        return self in (AppState.FAILED, AppState.COMPLETED)


@dataclass(frozen=True, slots=True)
class Application:
    """A SparkApplication as far as decisions need it; times are seconds since 1970."""

    state: AppState
    message: str
    """Why it failed, at most 256 characters; empty where nothing did."""
    created: float
    ended: float | None
    """When the driver of the last attempt ended, or the submission of it was given up."""
    submitted: float | None
    """When the last attempt was submitted."""
    attempts: int
    pods: frozenset[str]
    """Every pod of the last attempt that the Spark operator has seen, gone ones included."""


class SnapshotPhase(enum.StrEnum):
    """Where a snapshot is; only after DONE may anybody consume the stream."""

    WAITING = "Waiting"
    """No Spark operator has picked the application up, or it is being submitted."""
    RUNNING = "Running"
    """Being copied, between two attempts, or copied and waiting for the last possible write."""
    FAILED = "Failed"
    """Will not finish without somebody's help."""
    DONE = "Done"
    """Copied, and nothing writes any more."""


@dataclass(frozen=True, slots=True)
class SnapshotDecision:
    """What to make of a snapshot now."""

    phase: SnapshotPhase
    reason: str
    """Reason of a condition: SnapshotStarting, SparkOperatorMissing, SnapshotRunning, SnapshotRetrying,
    SnapshotSettling, SnapshotFailed, SnapshotIncomplete, SnapshotCompleted."""
    message: str
    look_again: float | None = None
    """Time at which the answer changes by itself, seconds since 1970; None where an event will tell."""


def parse_progress(config_map: Mapping[str, Any] | None) -> SnapshotProgress:
    """Done and total splits of the ConfigMap `<name>-snapshot`; unknown total where there is none yet.

    Raises:
        ots_tunnel.errors.CodecError: the record was damaged.
    """
    return SnapshotProgress("", 0, None) if config_map is None else read_progress(config_map)


def application_state(app: Mapping[str, Any]) -> Application:
    """Read an application; a state this release does not know counts as UNKNOWN."""
    status: Mapping[str, Any] = app.get("status") or {}
    current = status.get("applicationState") or {}
    text = current.get("state") or ""
    driver = (status.get("driverInfo") or {}).get("podName")
    executors = status.get("executorState") or {}
    return Application(
        state=AppState(text) if text in list(AppState) else AppState.UNKNOWN,
        message=shorten(current.get("errorMessage") or ""),
        created=parse_time(app["metadata"].get("creationTimestamp")) or 0.0,
        ended=parse_time(status.get("terminationTime")),
        submitted=parse_time(status.get("lastSubmissionAttemptTime")),
        attempts=int(status.get("executionAttempts") or 0),
        pods=frozenset(executors) | (frozenset({driver}) if driver else frozenset()),
    )


def shorten(message: str) -> str:
    """The telling line of a stack trace, at most MAX_MESSAGE characters."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    telling = next((line for line in lines if _TELLING.search(line)), lines[0] if lines else "")
    return telling if len(telling) <= MAX_MESSAGE else telling[: MAX_MESSAGE - 3] + "..."


def snapshot_decision(
    app: Application | None,
    progress: SnapshotProgress,
    pods: Sequence[SparkPod],
    *,
    label: str,
    now: float,
    split_deadline: float,
    write_deadline: float,
    missing_after: float = 60.0,
) -> SnapshotDecision:
    """Judge a snapshot.

    Args:
        app: its application, None where there is none (not yet, or deleted).
        progress: its record, as `parse_progress` reads it.
        pods: pods of the application that exist now, driver and executors.
        label: the copy that is wanted: tunnel id, or uid of the object.
        now: seconds since 1970.
        split_deadline: seconds a task may send at most, `splits.deadlineSeconds` of the driver's document.
        write_deadline: D, seconds.
        missing_after: seconds after which an application nobody picked up means that there is no Spark operator.
    """
    complete = progress.complete and progress.label == label
    if complete:
        return _completed(app, progress, pods, now, split_deadline, write_deadline)
    share = _share(progress if progress.label == label else SnapshotProgress(label, 0, None))
    if app is None:
        return SnapshotDecision(SnapshotPhase.WAITING, "SnapshotStarting", "the SparkApplication does not exist yet")
    # A pod shows that it was picked up: the state is set only when spark-submit has ended, minutes on a busy node.
    if app.state is AppState.NEW and not pods and now >= app.created + missing_after:
        message = (
            f"nobody has picked the SparkApplication up within {missing_after:.0f} s: install the kubeflow "
            "spark-operator and let it watch this namespace (chart value spark.jobNamespaces)"
        )
        return SnapshotDecision(SnapshotPhase.WAITING, "SparkOperatorMissing", message)
    if app.state is AppState.NEW:
        message = "the SparkApplication waits for the Spark operator"
        return SnapshotDecision(SnapshotPhase.WAITING, "SnapshotStarting", message, app.created + missing_after)
    if app.state is AppState.SUBMITTED:
        return SnapshotDecision(SnapshotPhase.WAITING, "SnapshotStarting", "the driver has been submitted")
    if app.state is AppState.FAILED:
        message = f"the SparkApplication failed with {share}: {app.message or 'no message'}"
        return SnapshotDecision(SnapshotPhase.FAILED, "SnapshotFailed", message)
    if app.state is AppState.COMPLETED:
        message = f"the SparkApplication ended without an error, but recorded {share}"
        return SnapshotDecision(SnapshotPhase.FAILED, "SnapshotIncomplete", message)
    if app.state in (AppState.RUNNING, AppState.SUCCEEDING):
        return SnapshotDecision(SnapshotPhase.RUNNING, "SnapshotRunning", share)
    message = f"{share}; application is {app.state}" + (f": {app.message}" if app.message else "")
    return SnapshotDecision(SnapshotPhase.RUNNING, "SnapshotRetrying", message)


def _share(progress: SnapshotProgress) -> str:
    if progress.total is None:
        return "the splits are not known yet"
    return f"{progress.done} of {progress.total} splits done"


def _completed(
    app: Application | None,
    progress: SnapshotProgress,
    pods: Sequence[SparkPod],
    now: float,
    split_deadline: float,
    write_deadline: float,
) -> SnapshotDecision:
    """Every split is recorded; has everything that may still write come to its end?"""
    total = progress.total
    if app is not None and not app.state.terminal:
        return _settling(f"all {total} splits done; the application ends ({app.state or 'not picked up'})")
    live = sorted(pod.name for pod in pods if pod.phase in _LIVE_PHASES)
    if live:
        return _settling(f"all {total} splits done; {len(live)} pods still live, such as {live[0]}")
    safe = _last_write(app, progress, pods, split_deadline, write_deadline)
    if now < safe:
        return _settling(f"all {total} splits done; writes under way may last {safe - now:.0f} s", safe)
    return SnapshotDecision(SnapshotPhase.DONE, "SnapshotCompleted", f"all {total} splits done")


def _settling(message: str, look_again: float | None = None) -> SnapshotDecision:
    return SnapshotDecision(SnapshotPhase.RUNNING, "SnapshotSettling", message, look_again)


def _last_write(
    app: Application | None,
    progress: SnapshotProgress,
    pods: Sequence[SparkPod],
    split_deadline: float,
    write_deadline: float,
) -> float:
    """The time after which no write of this snapshot can take effect any more."""
    # No task starts after the write that recorded the last split, so it stands in for an end nobody recorded.
    recorded = progress.updated or 0.0
    ended = max(recorded, app.ended) if app is not None and app.ended is not None else recorded
    longest = split_deadline + write_deadline
    if app is None or app.ended is None:
        return ended + longest
    proven = {pod.name for pod in pods if pod.terminated}
    if not app.pods or not app.pods <= proven:
        return ended + longest
    # Pods of earlier attempts are gone: their tasks started before the last submission.
    earlier = app.submitted + longest if app.attempts > 1 and app.submitted is not None else 0.0
    return max(ended + write_deadline, earlier)
