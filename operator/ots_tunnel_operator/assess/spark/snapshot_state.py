"""The states of a snapshot, and what follows from each: one table for plan, status and problems."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from ots_tunnel_operator.assess.spark.application_state import AppState
from ots_tunnel_operator.reasons import Reason


class SnapshotState(enum.Enum):
    """The one answer to "where is the snapshot"; consumers start only in NOT_NEEDED."""

    NOT_NEEDED = "not needed"
    """Spark copies nothing for this object, or the completed copy is recorded."""
    AWAITING_STREAM = "awaiting stream"
    """A channel of the stream has no token yet: a row read now could miss a change."""
    STARTING = "starting"
    """The application is to be created, waits for the Spark operator, or is being submitted."""
    OPERATOR_MISSING = "operator missing"
    """The application was not picked up for so long that no Spark operator can be watching it."""
    COPYING = "copying"
    """An attempt runs."""
    RETRYING = "retrying"
    """An attempt failed; the Spark operator submits another one."""
    INTERRUPTED = "interrupted"
    """No attempt runs: between two attempts, suspended, or in a state that this release does not know."""
    FAILED = "failed"
    """The application has ended with splits missing; the Spark operator submits nothing again."""
    SETTLING = "settling"
    """Every split is recorded as done, but something could still write."""
    DONE = "done"
    """Copied, and nothing can write any more; to be recorded now."""

    @property
    def runs_application(self) -> bool:
        """Whether the application has to exist in this state."""
        return self in _RUNS_APPLICATION


_RUNS_APPLICATION = frozenset(
    {
        SnapshotState.STARTING,
        SnapshotState.OPERATOR_MISSING,
        SnapshotState.COPYING,
        SnapshotState.RETRYING,
        SnapshotState.INTERRUPTED,
        SnapshotState.FAILED,
    }
)

#: State of the snapshot while splits are missing, by the application's state; NEW may also be OPERATOR_MISSING.
WHILE_COPYING: Mapping[AppState, SnapshotState] = {
    AppState.NEW: SnapshotState.STARTING,
    AppState.SUBMITTED: SnapshotState.STARTING,
    AppState.RUNNING: SnapshotState.COPYING,
    AppState.SUCCEEDING: SnapshotState.COPYING,
    AppState.FAILING: SnapshotState.RETRYING,
    AppState.SUBMISSION_FAILED: SnapshotState.RETRYING,
    AppState.PENDING_RERUN: SnapshotState.INTERRUPTED,
    AppState.INVALIDATING: SnapshotState.INTERRUPTED,
    AppState.SUSPENDING: SnapshotState.INTERRUPTED,
    AppState.SUSPENDED: SnapshotState.INTERRUPTED,
    AppState.RESUMING: SnapshotState.INTERRUPTED,
    AppState.UNKNOWN: SnapshotState.INTERRUPTED,
    AppState.FAILED: SnapshotState.FAILED,
    AppState.COMPLETED: SnapshotState.FAILED,
}

#: States that are problems: the reason, and what the user can do.
PROBLEMS: Mapping[SnapshotState, tuple[Reason, str]] = {
    SnapshotState.OPERATOR_MISSING: (
        Reason.SPARK_OPERATOR_MISSING,
        "install the kubeflow spark-operator and let it watch this namespace (chart value spark.jobNamespaces)",
    ),
    SnapshotState.RETRYING: (
        Reason.SNAPSHOT_RETRYING,
        "see the log of its driver if this repeats; the Spark operator submits it again",
    ),
    SnapshotState.FAILED: (
        Reason.SNAPSHOT_FAILED,
        "see the log of its driver, fix the cause and delete the SparkApplication: a new one copies the missing splits",
    ),
}
