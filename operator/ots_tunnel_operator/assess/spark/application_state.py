"""A SparkApplication as the Spark operator's status describes it (states: docs/architecture.md 6.4). Pure."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator.times import latest_time, parse_time

#: Longest error text taken over; the Spark operator's own may be a stack trace of 10 kB.
MAX_CAUSE = 256
#: Words that mark the line of a stack trace that names the cause.
_CAUSE = re.compile(r"exception|error|denied|forbidden|failed|refused|not found", re.IGNORECASE)


class AppState(enum.StrEnum):
    """State of a SparkApplication; the values are the Spark operator's own."""

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
        """Whether the Spark operator submits nothing again."""
        return self in (AppState.FAILED, AppState.COMPLETED)


@dataclass(frozen=True, slots=True)
class Application:
    """The part of a SparkApplication that decisions need; times are seconds since 1970."""

    state: AppState
    message: str
    """Error text of the last failed attempt, at most 256 characters; empty without a failure."""
    created: float
    ended: float | None
    """Latest end of the last attempt's driver, or time at which its submission was given up."""
    submitted: float | None
    """Latest submission of the last attempt."""
    attempts: int
    """Submissions, the failed ones included: one that failed may have made a driver."""
    pods: frozenset[str]
    """Names of all pods of the last attempt, including deleted ones."""
    suspend: bool = False
    """spec.suspend."""
    generation: int = 1
    """1 until a client changes its spec."""

    @property
    def is_suspended(self) -> bool:
        """Whether nothing runs, and nothing will: one that is not to be suspended any more is started."""
        return self.state is AppState.SUSPENDED and self.suspend


def read_application(app: Mapping[str, Any]) -> Application:
    """Read an application; a state that this release does not know becomes UNKNOWN."""
    status: Mapping[str, Any] = app.get("status") or {}
    current = status.get("applicationState") or {}
    text = current.get("state") or ""
    driver = (status.get("driverInfo") or {}).get("podName")
    executors = status.get("executorState") or {}
    return Application(
        state=AppState(text) if text in list(AppState) else AppState.UNKNOWN,
        message=shorten(current.get("errorMessage") or ""),
        created=parse_time(app["metadata"].get("creationTimestamp")) or 0.0,
        ended=latest_time(status.get("terminationTime")),
        submitted=latest_time(status.get("lastSubmissionAttemptTime")),
        attempts=max(int(status.get(field) or 0) for field in ("executionAttempts", "submissionAttempts")),
        pods=frozenset(executors) | (frozenset({driver}) if driver else frozenset()),
        suspend=bool((app.get("spec") or {}).get("suspend")),
        generation=int(app["metadata"].get("generation") or 1),
    )


def shorten(message: str) -> str:
    """The line of a stack trace that names the cause, at most MAX_CAUSE characters."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    cause = next((line for line in lines if _CAUSE.search(line)), lines[0] if lines else "")
    return cause if len(cause) <= MAX_CAUSE else cause[: MAX_CAUSE - 3] + "..."
