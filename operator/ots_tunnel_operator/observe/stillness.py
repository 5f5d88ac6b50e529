"""Since when workers have not answered, channels not moved, and no pod of Spark run. Changes only the loop's cache.

Only times are kept here; what they mean is decided in `assess.progress` and `assess.spark.standstill`. Times are lost
with the process: the first look of a new one counts as the beginning, unless the status already reports the same, which
then goes on. While no worker is ready and no driver of a query runs nothing can move: that time does not count, or a
resumed object would stand still from its first moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ots_tunnel.model import ChannelInfo, ChannelStatus
from ots_tunnel_operator.assess.kept_reports import shown
from ots_tunnel_operator.assess.progress import SILENT_SECONDS
from ots_tunnel_operator.assess.reported import reported_channels
from ots_tunnel_operator.kube.kinds import SPARK_APPLICATION
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.names import query_name, snapshot_name
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.world.pod import RUNNING, Pod, SparkPod, SparkRole
from ots_tunnel_operator.world.report import KeptReport, WorkerChannel
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World

#: Seconds after which a report is no longer kept, however few passes asked in between.
OLDEST_SECONDS = 60.0
#: Figures of a channel that the service tells; the worker tells the others.
_TOLD = 4


def observe_silence(world: World, cache: LoopCache) -> World:
    """The world with the time since which each ready worker has not answered."""
    silent = {pod.name for pod in world.pods if pod.ready and pod.report is None}
    # a pod that falls silent later has nothing to do with what was reported
    is_first_look = cache.observed_time is None
    first = 0.0 if is_first_look and _reports(world, Reason.WORKERS_UNREACHABLE) else world.now
    cache.silent_since = {name: cache.silent_since.get(name, first) for name in silent}
    return replace(world, pods=_with_kept(world, cache), silent_since=dict(cache.silent_since))


def _with_kept(world: World, cache: LoopCache) -> tuple[Pod, ...]:
    """The pods; one that has not answered for less than SILENT_SECONDS with its last report."""
    ready = {pod.name: pod for pod in world.pods if pod.ready}
    for name, pod in ready.items():
        if pod.report is not None:
            cache.reports[name] = KeptReport(pod.report, world.now)
    since = cache.silent_since
    cache.reports = {
        name: kept
        for name, kept in cache.reports.items()
        if name in ready
        and world.now - since.get(name, world.now) < SILENT_SECONDS
        and world.now - kept.time < OLDEST_SECONDS
    }
    return tuple(replace(pod, kept=cache.reports.get(pod.name)) if pod.name in since else pod for pod in world.pods)


def observe_spark(world: World, cache: LoopCache) -> World:
    """The world with the times of its Spark pods: since when no driver, and no executor, of copy and query runs, and
    since when pods of an application that is gone are alive."""
    is_first_look = cache.observed_time is None
    first = 0.0 if is_first_look and _reports(world, Reason.NOT_PROGRESSING) else world.now
    running = {SparkRole.of_copy(pod) for pod in world.spark_pods if pod.runs}
    running |= {SparkRole.of_query(pod) for pod in world.query_pods if pod.runs}
    cache.none_runs_since = {role: cache.none_runs_since.get(role, first) for role in SparkRole if role not in running}
    cache.stopped_until |= dict.fromkeys(_stopped(world), world.now)
    # from the first sight on, also by a new process: what is said of them is to delete them by force
    cache.orphaned_since = {pod.name: cache.orphaned_since.get(pod.name, world.now) for pod in _orphans(world)}
    return replace(
        world,
        none_runs_since=dict(cache.none_runs_since),
        stopped_until=dict(cache.stopped_until),
        orphaned_since=dict(cache.orphaned_since),
    )


def _stopped(world: World) -> Iterator[str]:
    """Names of the applications that need no pods, because they are suspended."""
    for name in (snapshot_name(world.resource.name), query_name(world.resource.name)):
        found = world.child(SPARK_APPLICATION.kind, name) or {}
        if world.resource.spec.suspend or (found.get("spec") or {}).get("suspend"):
            yield name


def _orphans(world: World) -> Iterator[SparkPod]:
    name = world.resource.name
    for application, pods in ((snapshot_name(name), world.spark_pods), (query_name(name), world.query_pods)):
        if world.child(SPARK_APPLICATION.kind, application) is None:
            yield from (pod for pod in pods if pod.is_alive and not pod.terminated)


def observe_movement(world: World, cache: LoopCache) -> World:
    """The world with the time since which nothing has moved on each channel; unchanged without a description."""
    if not isinstance(world.tunnel, Tunnel):
        return world
    first = 0.0 if not cache.marks and _reports(world, Reason.NOT_PROGRESSING) else world.now
    drivers = (pod for pod in world.query_pods if not pod.is_executor)
    can_move = any(pod.ready for pod in world.pods) or any(pod.phase == RUNNING for pod in drivers)
    reports = reported_channels(shown(world).pods, world.tunnel.description)
    marks: dict[str, tuple[tuple[object, ...], float]] = {}
    for channel in world.tunnel.description.channels:
        if channel.status is not ChannelStatus.TERMINATED:
            found = reports.get(channel.channel_id)
            report = None if found is None else found.channel
            figures = _figures(channel, report)
            before = cache.marks.get(channel.channel_id)
            if report is None and before is not None:
                # that a worker says nothing is no movement
                figures = *figures[:_TOLD], *before[0][_TOLD:]
            if not can_move:
                marks[channel.channel_id] = figures, world.now
            elif before is None:
                marks[channel.channel_id] = figures, first
            else:
                marks[channel.channel_id] = before if before[0] == figures else (figures, world.now)
    cache.marks = marks
    return replace(world, unmoved_since={channel: since for channel, (_, since) in marks.items()})


def _figures(channel: ChannelInfo, report: WorkerChannel | None) -> tuple[object, ...]:
    """What changes when a channel moves: rows and consume points, of service and worker, state and owner."""
    told = (report.state, report.rows, report.consumed_up_to, report.finished, report.end_reached) if report else ()
    return channel.status, channel.client_id, channel.rows, channel.consume_point_ns, *told


def _reports(world: World, reason: Reason) -> bool:
    conditions = world.resource.status.get("conditions") or ()
    return any((item.get("type"), item.get("reason")) == ("Degraded", str(reason)) for item in conditions)
