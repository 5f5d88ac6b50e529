"""The states of a query by Spark, and what follows from each: one table for plan, status and problems."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from ots_tunnel_operator.assess.spark.application_state import AppState
from ots_tunnel_operator.reasons import Reason


class QueryState(enum.Enum):
    """The one answer to "does the query follow the tunnel"."""

    NOT_USED = "not used"
    """Workers follow the changes of this object, or nothing does."""
    STARTING = "starting"
    """The application is to be created, waits for the Spark operator, or its driver does not follow the tunnel yet."""
    OPERATOR_MISSING = "operator missing"
    """The application was not picked up for so long that no Spark operator can be watching it."""
    FOLLOWING = "following"
    """The driver runs and has recorded its progress."""
    SILENT = "silent"
    """The driver is there, and has recorded nothing for so long that nobody knows what it does."""
    RETRYING = "retrying"
    """A driver has ended with an error, and the next one does not follow the tunnel yet."""
    INTERRUPTED = "interrupted"
    """No driver runs: between two of them, suspended, or in a state that this release does not know."""
    FAILED = "failed"
    """The application has ended; the Spark operator submits nothing again."""


#: State of the query by the application's state, before anything is known of its record.
BY_APPLICATION: Mapping[AppState, QueryState] = {
    AppState.NEW: QueryState.STARTING,
    AppState.SUBMITTED: QueryState.STARTING,
    AppState.RUNNING: QueryState.STARTING,
    AppState.SUCCEEDING: QueryState.INTERRUPTED,
    AppState.FAILING: QueryState.RETRYING,
    AppState.SUBMISSION_FAILED: QueryState.RETRYING,
    AppState.PENDING_RERUN: QueryState.INTERRUPTED,
    AppState.INVALIDATING: QueryState.INTERRUPTED,
    AppState.SUSPENDING: QueryState.INTERRUPTED,
    AppState.SUSPENDED: QueryState.INTERRUPTED,
    AppState.RESUMING: QueryState.INTERRUPTED,
    AppState.UNKNOWN: QueryState.INTERRUPTED,
    AppState.FAILED: QueryState.FAILED,
    AppState.COMPLETED: QueryState.FAILED,
}

#: States that are problems: the reason, and what the user can do.
PROBLEMS: Mapping[QueryState, tuple[Reason, str]] = {
    QueryState.OPERATOR_MISSING: (
        Reason.SPARK_OPERATOR_MISSING,
        "install the kubeflow spark-operator and let it watch this namespace (chart value spark.jobNamespaces)",
    ),
    QueryState.RETRYING: (
        Reason.QUERY_RETRYING,
        "see the log of its driver if this repeats; the Spark operator submits it again",
    ),
    QueryState.FAILED: (
        Reason.QUERY_FAILED,
        "correct the cause; an edit of the spec that reaches the query starts another one, and so does deleting the "
        "SparkApplication",
    ),
}
