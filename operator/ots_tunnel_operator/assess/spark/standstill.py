"""A copy or a query by Spark that stands still, whatever the state of its application says. Pure.

Theory of operation
-------------------
While Spark copies, a finished split is what moves. A task ends within the split deadline, well or not, so a copy that
runs finishes one in this time. A query that brings existing rows moves a channel of the tunnel with each batch, and has
BATCH_SECONDS for it. So has a driver for its first record: also one that finds nothing to do writes it within a minute.
A mirror brings its existing rows in one commit: it is not judged while executors run.

Pods come and go: an executor is replaced, a driver is started again. So where one that has to run does not, the time
counts since the last one of its role ran (`World.none_runs_since`), since the application was submitted, and since it
was suspended last.
STARTING_SECONDS are enough to tell. They are also enough for an application that does not end after its last split,
and for pods whose application is gone: what follows waits for their end, which a lost node never tells.

Example: a mirror has copied for two hours when the node of its only executor is drained. The new executor's pod waits
for a node. Nothing is said for 300 s; then the object is Degraded, NotProgressing, and names the pod.
"""

from __future__ import annotations

from collections.abc import Iterable

from ots_tunnel.model import Stage
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.lag import consumable
from ots_tunnel_operator.assess.progress import PROGRESS_SECONDS, is_still
from ots_tunnel_operator.assess.spark.application_state import Application, AppState
from ots_tunnel_operator.assess.spark.query import SILENT_SECONDS, Query, drivers_of
from ots_tunnel_operator.assess.spark.query_state import QueryState
from ots_tunnel_operator.assess.spark.snapshot import SPLIT_DEADLINE, Snapshot
from ots_tunnel_operator.assess.spark.snapshot_state import SnapshotState
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.pod import RUNNING, SparkPod, SparkRole
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World

#: Seconds within which pods of a copy start, and an application ends: an image of 1 GB has to be fetched first.
STARTING_SECONDS = 300.0
#: Seconds within which a running copy finishes a split; two attempts of its task, as the first may be lost.
COPYING_SECONDS = 2 * SPLIT_DEADLINE + PROGRESS_SECONDS
#: States of a copy in which something has to move; the others are problems, or wait for the stream.
_MOVING = frozenset({SnapshotState.STARTING, SnapshotState.COPYING, SnapshotState.INTERRUPTED, SnapshotState.SETTLING})
#: Seconds within which a query commits a batch of existing rows: of 64 MiB at most, each once in a trigger's interval.
BATCH_SECONDS = 600.0
#: States of a query in which its pods have to run.
_QUERY_MOVES = frozenset({QueryState.STARTING, QueryState.FOLLOWING, QueryState.SILENT, QueryState.INTERRUPTED})
#: Seconds within which a state of an application has a driver, or becomes one that has; the others need none.
_DRIVER_WITHIN = {
    AppState.NEW: STARTING_SECONDS,
    AppState.SUBMITTED: STARTING_SECONDS,
    AppState.RUNNING: STARTING_SECONDS,
    AppState.SUCCEEDING: BATCH_SECONDS,
    AppState.PENDING_RERUN: BATCH_SECONDS,
    AppState.INVALIDATING: BATCH_SECONDS,
    AppState.SUSPENDED: BATCH_SECONDS,
    AppState.RESUMING: BATCH_SECONDS,
    AppState.UNKNOWN: BATCH_SECONDS,
}


def find_idle_copy(world: World, snapshot: Snapshot) -> Problem | None:
    """A copy by Spark that stands still; None while it moves, or where another problem says why it does not."""
    app, progress = snapshot.application, snapshot.progress
    if world.resource.spec.suspend or snapshot.state not in _MOVING:
        return None
    if app is None:
        orphan = _orphan(world, world.spark_pods)
        return None if orphan is None else _idle(orphan)
    recorded = progress.updated if progress is not None else None
    stopped = world.stopped_until.get(names.snapshot_name(world.resource.name), 0.0)
    idle = world.now - max(recorded or 0.0, app.submitted or 0.0, app.created, stopped)
    drivers = [pod for pod in world.spark_pods if pod.is_alive and not pod.is_executor]
    executors = [pod for pod in world.spark_pods if pod.is_alive and pod.is_executor]
    if snapshot.state is SnapshotState.SETTLING:
        # the workers wait for the last write; only what does not end is late
        is_ending = bool(drivers) or not app.state.terminal
        what = f"{snapshot.message}: see its pods; delete one whose node is lost"
        return _idle(what) if is_ending and idle >= STARTING_SECONDS else None
    runs = any(pod.phase == RUNNING for pod in executors)
    waiting = [pod for pod in (*drivers, *(() if runs else executors)) if pod.phase != RUNNING]
    late = [pod for pod in waiting if min(idle, _absent(world, SparkRole.of_copy(pod), app, pod)) >= STARTING_SECONDS]
    if late:
        return _idle(_not_started(late))
    what = f"{snapshot.message}: see the logs of its driver, its executors and the Spark operator"
    return _idle(what) if idle >= COPYING_SECONDS else None


def find_idle_query(world: World, query: Query) -> Problem | None:
    """A query by Spark that stands still; None where it moves, or another problem says why it does not.

    It has no driver, its pods do not start or do not end, its driver records nothing, or no channel of existing rows
    moves. The lag tells of changes. A mirror is not judged while its executors bring the existing rows: that is one
    commit. Nor is what this operator has suspended.
    """
    app = query.application
    if world.resource.spec.suspend or query.state not in _QUERY_MOVES or (app is not None and app.suspend):
        return None
    if app is None:
        orphan = _orphan(world, world.query_pods)
        return None if orphan is None else _idle_query(orphan)
    drivers = drivers_of(world)
    within = _DRIVER_WITHIN.get(app.state)
    if not drivers and within is not None and _absent(world, SparkRole.QUERY_DRIVER, app) >= within:
        what = f"the SparkApplication is {app.state or 'new'}, and has no driver"
        return _idle_query(f"{what}: see the Spark operator, events, and quotas")
    if query.state is QueryState.INTERRUPTED:
        return None  # what runs is of the attempt before
    alive = [pod for pod in world.query_pods if pod.is_alive]
    executors = [pod for pod in alive if pod.is_executor]
    runs = any(pod.phase == RUNNING for pod in executors)
    waiting = [pod for pod in alive if pod.phase != RUNNING and not (runs and pod.is_executor)]
    late = [pod for pod in waiting if _absent(world, SparkRole.of_query(pod), app, pod) >= STARTING_SECONDS]
    if late:
        return _idle_query(_not_started(late))
    patience = BATCH_SECONDS + (world.resource.spec.spark_settings.trigger_interval_seconds or 0)
    may_run = runs or _absent(world, SparkRole.QUERY_EXECUTOR, app) < STARTING_SECONDS
    copies = may_run and query.progress is None and world.resource.spec.is_mirror
    since = max([pod.started for pod in drivers if pod.started is not None], default=app.submitted or app.created)
    runs_long = world.now - since >= patience
    is_silent = query.recorded is None or query.recorded < since or world.now - query.recorded > SILENT_SECONDS
    if query.state is QueryState.STARTING and drivers and is_silent and not copies and runs_long:
        what = f"its driver runs, and has recorded no batch for {patience:.0f} s"
        return _idle_query(f"{what}: see its log, and whether it reaches source, sink and API server")
    if query.state in (QueryState.FOLLOWING, QueryState.SILENT) and runs_long and _brings_no_row(world, patience):
        what = f"no batch of existing rows was committed for {BATCH_SECONDS:.0f} s"
        return _idle_query(f"{what}: see the logs of its driver and its executors")
    return None


def _brings_no_row(world: World, patience: float) -> bool:
    """Whether existing rows wait in the tunnel, and nothing has moved on any of its channels for long."""
    if not isinstance(world.tunnel, Tunnel) or world.tunnel.description.tunnel.stage != Stage.BASE:
        return False
    channels = consumable(world.tunnel.description)
    return bool(channels) and all(is_still(channel, world, patience) for channel in channels)


def _absent(world: World, role: SparkRole, app: Application, pod: SparkPod | None = None) -> float:
    """Seconds for which no pod of a role has run although it should, and this one is there; 0 while one runs."""
    since, name = world.none_runs_since.get(role, world.now), world.resource.name
    application = names.snapshot_name(name) if role.is_of_copy else names.query_name(name)
    began = world.stopped_until.get(application, 0.0), 0.0 if pod is None else pod.created
    return world.now - max(since, app.submitted or 0.0, app.created, *began)


def _orphan(world: World, pods: Iterable[SparkPod]) -> str | None:
    """What is to be said of the pod that has outlived its application for longest; None while none has for long."""
    found = [pod for pod in pods if world.now - world.orphaned_since.get(pod.name, world.now) >= STARTING_SECONDS]
    if not found:
        return None
    pod = min(found, key=lambda pod: (world.orphaned_since[pod.name], pod.name))
    what = f"the SparkApplication is gone, or has lost its labels, and pod {pod.name} of it is {pod.phase}"
    return f"{what}: delete what is left of it, the pod by force if its node is lost and switched off"


def _not_started(pods: Iterable[SparkPod]) -> str:
    pod = min(pods, key=lambda pod: (pod.is_executor, pod.name))
    return f"pod {pod.name} is {pod.phase} ({pod.message or 'no reason is shown'}): let it start"


def _idle_query(why: str) -> Problem:
    return Problem(Reason.NOT_PROGRESSING, f"the query by Spark stands still: {why}")


def _idle(what: str) -> Problem:
    return Problem(Reason.NOT_PROGRESSING, f"the snapshot by Spark stands still: {what}")
