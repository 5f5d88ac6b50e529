"""What the status says of progress: channels, existing rows, lag and throughput. Pure; unknown is absent."""

from __future__ import annotations

from ots_tunnel_operator.api.status import MAX_SLOWEST
from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.kept_reports import observed_time
from ots_tunnel_operator.assess.lag import (
    Lag,
    base_progress,
    count_channels,
    is_initialised,
    percent,
    round_figure,
    round_lag,
)
from ots_tunnel_operator.assess.scaling.busy import worker_limit
from ots_tunnel_operator.assess.spark.snapshot_state import SnapshotState
from ots_tunnel_operator.plan.actions import Plan
from ots_tunnel_operator.report import Status
from ots_tunnel_operator.report.missing import find_unread
from ots_tunnel_operator.report.worker_status import held_channels
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import RUNNING, Pod
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World


def channels_status(world: World, plan: Plan, pods: tuple[Pod, ...]) -> Status | None:
    """How many channels there are, and how they are spread over the workers."""
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        return None
    counts = count_channels(world.tunnel.description)
    ready = [pod for pod in pods if pod.ready]
    # the fewest and the most are those of all workers: one that cannot be asked may have either
    owned = [held_channels(pod) for pod in ready] if all(pod.report is not None for pod in ready) else []
    status: Status = {
        "total": counts.total,
        "base": counts.base,
        "stream": counts.stream,
        "open": counts.open,
        "closing": counts.closing,
        "terminated": counts.terminated,
        # with everything delivered no channel waits to be read, whatever its state
        "unowned": 0 if plan.completed else counts.unowned,
    }
    if owned:
        status |= {"minPerWorker": min(owned), "maxPerWorker": max(owned)}
    return status


def base_status(world: World, assessment: Assessment) -> Status | None:
    """How far the existing rows are."""
    eta: Status = {} if assessment.base_eta is None else {"etaSeconds": round_figure(assessment.base_eta)}
    if world.resource.uses_spark:
        progress = assessment.snapshot.progress
        if progress is None or progress.total is None:
            # without a record nobody knows how far a copy is; one that is complete needs none
            return world.resource.status.get("base") if assessment.snapshot.is_complete else None
        share = percent(progress.done, progress.total)
        return {"percent": share, "done": progress.done, "total": progress.total} | eta
    if world.resource.wire_type == "Stream" or not isinstance(world.tunnel, Tunnel):
        return None
    found = base_progress(world.tunnel.description)
    if found is None:
        return None
    done, total, rows = found
    return {"percent": percent(done, total), "rows": rows, "done": done, "total": total} | eta


def lag_status(world: World, assessment: Assessment) -> Status | None:
    """How far the destination is behind the source, with the slowest channels, and how near a loss is."""
    lag, used = assessment.lag, assessment.retention_used
    retention: Status = {} if used is None else {"retentionUsedPercent": used}
    if lag is None:
        return {"observedTime": timestamp(observed_time(world))} | retention if retention else None
    known = [channel for channel in lag.channels if channel.seconds is not None]
    known.sort(key=lambda channel: (-(channel.seconds or 0), channel.channel.channel_id))
    slowest = [
        {
            "id": str(channel.channel.channel_id),
            "type": str(channel.channel.channel_type),
            **({"worker": channel.worker} if channel.worker else {}),
            "seconds": round_lag(channel.seconds or 0),
        }
        for channel in known[:MAX_SLOWEST]
        if channel.seconds
    ]
    status: Status = {"slowest": slowest, "observedTime": timestamp(observed_time(world))} | retention
    if world.resource.spec.source.stream is not None:
        status |= _unreported(lag)
    if lag.seconds is not None:
        status["seconds"] = round_lag(lag.seconds)
    if lag.consumed_up_to is not None:
        status["consumedUpTo"] = timestamp(lag.consumed_up_to)
    if lag.caught_up is not None:
        # what a reset has given up, or a worker has passed, never comes, however far the workers have read
        status["caughtUp"] = lag.caught_up and find_unread(world.resource, assessment.gaps) is None
    return status


def _unreported(lag: Lag) -> Status:
    """How many shards no worker reports: those whose lag their checkpoint tells, and those whose lag is not known."""
    silent = [channel for channel in lag.channels if channel.worker is None]
    unknown = sum(channel.seconds is None for channel in silent)
    return {"byCheckpoint": len(silent) - unknown, "notLookedAt": unknown}


def throughput_status(world: World, assessment: Assessment, pods: tuple[Pod, ...]) -> Status | None:
    """Rate of all workers, only if every one that could move rows has told its own; rows as counted by the service.

    That is every worker with a process, also one that is not ready: a drain still writes. While Spark copies, the rate
    is not known: 0 would be the rate of workers that are not there.
    """
    status: Status = {}
    figures = assessment.query.figures
    # a message may tell how the process before ended, of a pod that is ready again
    moving = [pod for pod in pods if pod.is_alive and pod.phase == RUNNING and (pod.ready or not pod.message)]
    reports = [pod.report for pod in moving]
    rates = [report.rows_per_second for report in reports if report is not None]
    known = [rate for rate in rates if rate is not None]
    is_known = len(known) == len(reports) and (bool(reports) or not pods)
    if world.resource.spec.uses_query:
        if figures is not None and figures.rows_per_second is not None:
            status["rowsPerSecond"] = round_figure(figures.rows_per_second)
    elif is_known and assessment.snapshot.state is SnapshotState.NOT_NEEDED:
        status["rowsPerSecond"] = round_figure(sum(known))
    is_counted = world.resource.spec.source.stream is None
    if is_counted and isinstance(world.tunnel, Tunnel) and is_initialised(world.tunnel.description):
        status["rowsTotal"] = sum(channel.rows for channel in world.tunnel.description.channels)
    ready = sum(pod.ready for pod in pods)
    if status and ready and (limit := worker_limit(world.resource.spec)) is not None:
        # not alone: figures that cannot be observed stay as they were
        status["limitRowsPerSecond"] = limit * ready
    return status or None
