"""Where a query by Spark stands that follows the tunnel in the place of workers. Pure.

Theory of operation
-------------------
Two parts tell of it:

    SparkApplication <name>-stream    its state, and the error of the last attempt
    ConfigMap <name>-stream           batch, rate, lag and the last error, written by the driver; its label is the
                                      tunnel's id, and a record with another one counts as absent

`assess_query` takes the first case that applies:

    1. workers follow the changes, or none do                             NOT_USED
    2. the application was not picked up for long, and has no pod         OPERATOR_MISSING
    3. it has ended                                                       FAILED
    4. the record has the error of a driver, and no later one has had     RETRYING, unless it is being stopped
       ATTEMPT_SECONDS
    5. it is said to run, and has no driver                               INTERRUPTED
    6. a driver runs, and has recorded progress since its start           FOLLOWING, or SILENT after SILENT_SECONDS
    7. otherwise the state of the application decides                     `query_state.BY_APPLICATION`

A driver keeps its error in the record until the next one follows the tunnel, so that the object does not seem well
between two attempts. One that is there for ATTEMPT_SECONDS is judged by itself: it may wait for a node, or bring
existing rows for hours. What no attempt repairs ends with exit code 0: then the application is COMPLETED, and the
record says why. Exit code 2, a document or pod that is wrong, leaves no record: the Spark operator tells the code, also
while the application waits for its next attempt.

The record's times are the driver's, and the start of its pod is that of its node, so both are by one clock. Where that
is not known the submission stands for it, by the clock of the Spark operator, which may differ by CLOCK_SECONDS. So may
that of this operator, by which a record gets old: a driver that follows the tunnel writes every ALIVE_SECONDS, and one
that is frozen, or cut off from the API server, leaves a record that was well. Where the Spark operator is gone, an
application is RUNNING for good, whatever becomes of its driver.
"""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel.errors import CodecError, PossibleGap
from ots_tunnel.query.record import ALIVE_SECONDS, QueryProgress, QueryRecord, read_query_record
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.spark.application_state import Application, AppState, read_application
from ots_tunnel_operator.assess.spark.query_state import BY_APPLICATION, PROBLEMS, QueryState
from ots_tunnel_operator.reasons import Problem
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import SparkPod
from ots_tunnel_operator.world.world import World

#: Seconds by which the clocks of driver, Spark operator and this operator may differ.
CLOCK_SECONDS = 60.0
#: Age in seconds from which on a record tells nothing of the driver: an API server may refuse two writes of the driver.
SILENT_SECONDS = 3 * ALIVE_SECONDS + CLOCK_SECONDS
#: Seconds for which a driver stands behind the error of the one before: most that fail again fail earlier.
ATTEMPT_SECONDS = 300.0
#: Seconds from the start of a pod until its driver can have an error: those of a JVM and of a session.
LEAST_SECONDS = 5.0
#: States in which an error of the record is that of a driver that somebody has stopped since, or that comes again.
_STOPPED = frozenset({AppState.SUSPENDING, AppState.SUSPENDED, AppState.RESUMING, AppState.INVALIDATING})


@dataclass(frozen=True, slots=True)
class Query:
    """A query as of one pass."""

    state: QueryState
    application: Application | None = None
    progress: QueryProgress | None = None
    """The record of this tunnel; None where there is none, or it is damaged."""
    recorded: float | None = None
    """Time of the driver's last write into it, by its clock, Unix seconds."""
    message: str = ""
    problem: Problem | None = None

    @property
    def figures(self) -> QueryProgress | None:
        """The progress of a driver that runs; None while nobody knows it."""
        return self.progress if self.state is QueryState.FOLLOWING else None

    @property
    def lag_seconds(self) -> int | None:
        """Age of the oldest change that waits, as a driver that runs tells it; None is unknown."""
        return None if self.figures is None else self.figures.lag_seconds


def assess_query(world: World, *, missing_seconds: float) -> Query:
    """Where the query stands; the cases are those of the module's description.

    Args:
        world: what was observed.
        missing_seconds: an application that was not picked up for so long means that there is no Spark operator.
    """
    if not world.resource.spec.uses_query:
        return Query(QueryState.NOT_USED)
    name = names.query_name(world.resource.name)
    found = world.child("SparkApplication", name)
    application = None if found is None else read_application(found)
    record = _record(world, name)
    progress, recorded = (None, None) if record is None else (record.progress, record.updated)
    state = _state(world, application, record, missing_seconds)
    message = _silence(recorded) if state is QueryState.SILENT else _message(state, application, progress)
    problem = None
    if state in PROBLEMS:
        reason, hint = PROBLEMS[state]
        if state is QueryState.FAILED and progress is not None and PossibleGap.read(progress.error) is not None:
            hint = "set onPossibleGap to Continue until the query has passed it"
        problem = Problem(reason, f"SparkApplication {name!r}: {message}: {hint}")
    return Query(state, application, progress, recorded, message, problem)


def _record(world: World, name: str) -> QueryRecord | None:
    """The record of the object's tunnel; None where there is none, where it is damaged, and before the first write."""
    found = world.child("ConfigMap", name)
    if found is None:
        return None
    try:
        record = read_query_record(found)
    except CodecError:
        # figures alone, which the driver writes again
        return None
    is_own = record.label == str(world.resource.recorded_tunnel.get("id") or "")
    return record if is_own and record.updated is not None else None


def _state(world: World, app: Application | None, record: QueryRecord | None, missing_seconds: float) -> QueryState:
    if app is None:
        return QueryState.STARTING
    # the Spark operator sets the state after spark-submit; a pod shows up before
    if app.state is AppState.NEW and not world.query_pods and world.now >= app.created + missing_seconds:
        return QueryState.OPERATOR_MISSING
    state = BY_APPLICATION[app.state]
    if app.state is AppState.PENDING_RERUN and app.message:
        # of an attempt that has failed: exit code 2 leaves no record
        state = QueryState.RETRYING
    if state is QueryState.FAILED:
        return state
    if record is not None and record.progress.error and not _is_another_try(world, record):
        return state if app.state in _STOPPED else QueryState.RETRYING
    if app.state is not AppState.RUNNING:
        return state
    drivers = drivers_of(world)
    if not drivers:
        return QueryState.INTERRUPTED
    if record is None or record.updated is None or record.progress.error:
        return state
    if not _is_since(drivers, app, record.updated):
        return state
    return QueryState.SILENT if world.now - record.updated > SILENT_SECONDS else QueryState.FOLLOWING


def drivers_of(world: World) -> tuple[SparkPod, ...]:
    """The pods of a driver that has not ended."""
    return tuple(pod for pod in world.query_pods if pod.is_alive and not pod.terminated and not pod.is_executor)


def _is_another_try(world: World, record: QueryRecord) -> bool:
    """Whether a driver is there for long that has not written the record itself.

    One that has no start yet has written nothing, and it takes a driver longer than LEAST_SECONDS to get to an error.
    """
    updated = record.updated or 0.0
    return any(
        world.now - pod.created >= ATTEMPT_SECONDS
        and (pod.created >= updated - CLOCK_SECONDS if pod.started is None else pod.started >= updated - LEAST_SECONDS)
        for pod in drivers_of(world)
    )


def _is_since(drivers: tuple[SparkPod, ...], app: Application, updated: float) -> bool:
    """Whether a record was written by the driver that runs, and not by the one before it."""
    starts = [pod.started for pod in drivers if pod.started is not None]
    if starts:
        return updated >= max(starts)
    return app.submitted is None or updated >= app.submitted - CLOCK_SECONDS


def _silence(recorded: float | None) -> str:
    """What is to be said of a driver that records nothing any more."""
    return (
        f"the driver has recorded nothing since {timestamp(recorded or 0.0)}, so that nobody knows whether it follows "
        "the tunnel: see its log, and whether it reaches the API server"
    )


def _message(state: QueryState, app: Application | None, progress: QueryProgress | None) -> str:
    """What is to be said of a state, without figures that change by themselves."""
    if app is None:
        return "the SparkApplication is being created"
    error = progress.error if progress is not None else ""
    former = f"; the one before it has ended: {error}" if error else ""
    match state:
        case QueryState.OPERATOR_MISSING:
            return "no Spark operator has picked up the SparkApplication"
        case QueryState.FOLLOWING:
            return "the query follows the tunnel"
        case QueryState.STARTING if app.state is AppState.NEW:
            return "the SparkApplication waits for the Spark operator"
        case QueryState.STARTING if app.state is AppState.SUBMITTED:
            return f"the Spark operator has submitted the driver{former}"
        case QueryState.STARTING:
            return f"the driver runs, and does not follow the tunnel yet{former}"
        case QueryState.FAILED if app.state is AppState.COMPLETED and error:
            return f"the query cannot go on: {error}"
        case QueryState.FAILED if app.state is AppState.COMPLETED:
            return "the query has ended without a recorded error"
        case QueryState.RETRYING if error:
            return f"the driver has ended: {error}"
        case _:
            return _standing(app)


def _standing(app: Application) -> str:
    """The application's state in words; said of one that runs only where no driver does."""
    if app.state is AppState.RUNNING:
        return "the SparkApplication is RUNNING, and has no driver"
    return f"the SparkApplication is {app.state}" + (f": {app.message}" if app.message else "")
