"""Workers that cannot be asked, and a data path that moves nothing, whatever the heartbeat says. Pure.

Theory of operation
-------------------
The service shows owners and consume points, and a worker whose heartbeat is answered keeps its channels, even if it
reads nothing. So movement itself is looked at: rows and consume points of service and workers (`observe.stillness`).
A channel that is to be read in the present stage and on which nothing has moved for PROGRESS_SECONDS is judged by what
is known about it, first match first. Files are confirmed when they appear, so there the age of a file comes on top
(`Sink.holds_seconds`):

    owner                          its worker's report            verdict
    a worker that does not answer  -                              left to WorkersUnreachable
    any                            finished, or end reached       as it should be
    any                            caught up                      no record waits
    any, base channel              anything else                  rows wait, or the channel would be TERMINATED
    any, stream channel            not caught up                  records wait, or cannot be asked for: an idle channel
                                                                  is read at least every 7 s, and is then caught up
    a client of this object        the channel is not in it       the worker holds the channel and does not read it
    a client whose pod is gone     -                              the same; the service would have freed it by then
    a client of something else     -                              left to ForeignClient
    none                           -                              counts only where no channel of the tunnel moves: a
                                                                  child waits for its parent without an owner

Nothing is judged while no worker is wanted, everything is delivered, or pods are missing or starting: then the workers
are the finding. A page is confirmed as a whole: a sink that takes longer than PROGRESS_SECONDS for one page (4 MiB at
most in one read) is reported, too.

While Spark copies, a finished split is what moves. A task ends within the split deadline, well or not, so a copy that
runs finishes one in this time. Where a pod that has to run does not start, or the application does not end after its
last split, STARTING_SECONDS are enough to tell. A query that brings existing rows moves a channel of the tunnel with
each batch, and has BATCH_SECONDS for it. So has a driver for its first record: also one that finds nothing to do writes
it within a minute.

Example: a worker's read hangs behind a firewall that drops packets, its heartbeats still pass. After 15 s it no longer
claims to be caught up; after 120 s the object is Degraded, NotProgressing, and names the channel and the pod.
"""

from __future__ import annotations

from ots_tunnel.model import ChannelInfo, ChannelType, Stage
from ots_tunnel.query.record import ALIVE_SECONDS
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.lag import consumable, is_initialised, reported_channels
from ots_tunnel_operator.assess.scaling.record import wanted_workers
from ots_tunnel_operator.assess.spark.application_state import AppState
from ots_tunnel_operator.assess.spark.query import Query, drivers_of
from ots_tunnel_operator.assess.spark.query_state import QueryState
from ots_tunnel_operator.assess.spark.snapshot import SPLIT_DEADLINE, Snapshot
from ots_tunnel_operator.assess.spark.snapshot_state import SnapshotState
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World

#: Seconds without movement from which on a channel is judged; more than a heartbeat timeout of the default settings.
PROGRESS_SECONDS = 120.0
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
#: States of an application that has, or is about to have, a driver.
_HAS_DRIVER = frozenset({AppState.SUBMITTED, AppState.RUNNING})
#: Phase of a pod that has started.
RUNNING = "Running"
#: Seconds for which a ready worker may not answer.
SILENT_SECONDS = 30.0


def find_unreachable(world: World) -> Problem | None:
    """Ready workers that the operator cannot ask; None without one."""
    silent = sorted(name for name, since in world.silent_since.items() if world.now - since >= SILENT_SECONDS)
    if not silent:
        return None
    return Problem(
        Reason.WORKERS_UNREACHABLE,
        f"pod {silent[0]} is ready but does not answer http://<pod>:{names.WORKER_PORT}/channels, so its lag is "
        f"unknown: let the operator reach the workers (NetworkPolicy, service mesh), or see the pod's log",
    )


def find_standstill(world: World) -> Problem | None:
    """A data path that moves nothing; the cases are those of the module's description."""
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        return None
    if world.resource.spec.suspend or not _is_staffed(world):
        return None
    channels, part = consumable(world.tunnel.description), world.resource.spec.source.part
    patience = PROGRESS_SECONDS + world.resource.spec.sink.holds_seconds
    still = [channel for channel in channels if _is_still(channel, world, patience)]
    for channel in sorted(still, key=lambda channel: channel.channel_id):
        why = _standstill(channel, world, none_moves=len(still) == len(channels))
        if why:
            return Problem(
                Reason.NOT_PROGRESSING,
                f"{part} {channel.channel_id}: nothing has moved for {patience:.0f} s, and {why}: see the log "
                f"of the worker, and whether worker, source and sink reach each other; deleting the pod moves the "
                f"{part} to another worker",
            )
    return None


def find_idle_copy(world: World, snapshot: Snapshot) -> Problem | None:
    """A copy by Spark that stands still; None while it moves, or where another problem says why it does not."""
    app, progress = snapshot.application, snapshot.progress
    if world.resource.spec.suspend or app is None or snapshot.state not in _MOVING:
        return None
    recorded = progress.updated if progress is not None else None
    idle = world.now - max(recorded or 0.0, app.submitted or 0.0, app.created)
    drivers = [pod for pod in world.spark_pods if pod.is_alive and not pod.is_executor]
    executors = [pod for pod in world.spark_pods if pod.is_alive and pod.is_executor]
    if snapshot.state is SnapshotState.SETTLING:
        # the workers wait for the last write; only what does not end is late
        is_ending = bool(drivers) or not app.state.terminal
        what = f"{snapshot.message}: see its pods; delete one whose node is lost"
        return _idle(what) if is_ending and idle >= STARTING_SECONDS else None
    runs = any(pod.phase == RUNNING for pod in executors)
    waiting = [pod for pod in (*drivers, *(() if runs else executors)) if pod.phase != RUNNING]
    if waiting and idle >= STARTING_SECONDS:
        pod = min(waiting, key=lambda pod: (pod.is_executor, pod.name))
        return _idle(f"pod {pod.name} is {pod.phase} ({pod.message or 'no reason is shown'}): let it start")
    what = f"{snapshot.message}: see the logs of its driver, its executors and the Spark operator"
    return _idle(what) if idle >= COPYING_SECONDS else None


def find_idle_query(world: World, query: Query) -> Problem | None:
    """A query by Spark that stands still; None where it moves, or another problem says why it does not.

    It has no driver, its pods do not start, its driver records nothing, or no channel of existing rows moves. The lag
    tells of changes. A mirror is not judged while its executors bring the existing rows: that is one commit.
    """
    app = query.application
    is_between = query.state is QueryState.INTERRUPTED and app is not None and app.state is not AppState.RUNNING
    if world.resource.spec.suspend or app is None or is_between or query.state not in _QUERY_MOVES:
        return None
    alive = [pod for pod in world.query_pods if pod.is_alive]
    executors = [pod for pod in alive if pod.is_executor]
    runs = any(pod.phase == RUNNING for pod in executors)
    waiting = [pod for pod in alive if pod.phase != RUNNING and not (runs and pod.is_executor)]
    if waiting and world.now - max(app.submitted or 0.0, app.created) >= STARTING_SECONDS:
        pod = min(waiting, key=lambda pod: (pod.is_executor, pod.name))
        return _idle_query(f"pod {pod.name} is {pod.phase} ({pod.message or 'no reason is shown'}): let it start")
    patience = BATCH_SECONDS + (world.resource.spec.spark_settings.trigger_interval_seconds or 0)
    drivers = drivers_of(world)
    if not drivers and app.state in _HAS_DRIVER:
        # a driver that has ended has recorded within ALIVE_SECONDS before
        since = max((query.recorded or 0.0) + ALIVE_SECONDS, app.submitted or 0.0, app.created)
        what = f"the SparkApplication is {app.state}, and has no driver: see the Spark operator, events, and quotas"
        return _idle_query(what) if world.now - since >= STARTING_SECONDS else None
    copies = runs and query.progress is None and world.resource.spec.is_mirror
    since = max([pod.started for pod in drivers if pod.started is not None], default=app.submitted or app.created)
    is_silent = query.recorded is None or query.recorded < since
    if query.state is QueryState.STARTING and drivers and is_silent and not copies and world.now - since >= patience:
        what = f"its driver runs, and has recorded no batch for {patience:.0f} s"
        return _idle_query(f"{what}: see its log, and whether it reaches source, sink and API server")
    if query.state is QueryState.FOLLOWING and _brings_no_row(world, patience):
        what = f"no batch of existing rows was committed for {BATCH_SECONDS:.0f} s"
        return _idle_query(f"{what}: see the logs of its driver and its executors")
    return None


def _brings_no_row(world: World, patience: float) -> bool:
    """Whether existing rows wait in the tunnel, and nothing has moved on any of its channels for long."""
    if not isinstance(world.tunnel, Tunnel) or world.tunnel.description.tunnel.stage != Stage.BASE:
        return False
    channels = consumable(world.tunnel.description)
    return bool(channels) and all(_is_still(channel, world, patience) for channel in channels)


def _idle_query(why: str) -> Problem:
    return Problem(Reason.NOT_PROGRESSING, f"the query by Spark stands still: {why}")


def _idle(what: str) -> Problem:
    return Problem(Reason.NOT_PROGRESSING, f"the snapshot by Spark stands still: {what}")


def _is_staffed(world: World) -> bool:
    alive = [pod for pod in world.pods if pod.is_alive]
    return 0 < wanted_workers(world.resource) <= sum(pod.ready for pod in alive)


def _is_still(channel: ChannelInfo, world: World, patience: float) -> bool:
    since = world.unmoved_since.get(channel.channel_id)
    return since is not None and world.now - since >= patience


def _standstill(channel: ChannelInfo, world: World, *, none_moves: bool) -> str:
    """Why a channel that does not move ought to; empty where it need not, or where another finding covers it."""
    owner = _owner(channel, world.pods)
    if owner is not None and owner.report is None:
        return ""
    pod, report = reported_channels(world.pods).get(channel.channel_id, ("", None))
    if report is not None:
        if report.finished or report.end_reached or report.caught_up:
            return ""
        if channel.channel_type == ChannelType.BASE:
            return f"rows of it wait for pod {pod}"
        return f"pod {pod} is not caught up"
    if not channel.client_id:
        return "no worker reads it" if none_moves else ""
    if not str(channel.client_id).startswith(names.client_tag_prefix(world.resource.uid)):
        return ""
    return f"its client {channel.client_id} does not read it"


def _owner(channel: ChannelInfo, pods: tuple[Pod, ...]) -> Pod | None:
    """The pod whose client holds a channel: a client id contains the tag, which ends with the pod's name."""
    return next((pod for pod in pods if channel.client_id and pod.name in str(channel.client_id)), None)
