"""The status of an object, from world, assessment and plan. Pure. Unknown is absent, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel.model import Stage
from ots_tunnel_operator import names
from ots_tunnel_operator.api.status import MAX_GAPS, MAX_SLOWEST
from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.creation import creation_text, of_recorded, stream_record, tunnel_record
from ots_tunnel_operator.assess.gap import gap_documents
from ots_tunnel_operator.assess.kept_reports import observed_time, shown
from ots_tunnel_operator.assess.lag import (
    HELD,
    Lag,
    base_progress,
    count_channels,
    is_initialised,
    percent,
    round_figure,
    round_lag,
)
from ots_tunnel_operator.assess.observed import find_unobserved
from ots_tunnel_operator.assess.scaling.busy import worker_limit
from ots_tunnel_operator.assess.spark.query import Query
from ots_tunnel_operator.assess.spark.query_state import QueryState
from ots_tunnel_operator.assess.spark.snapshot import COMPLETED
from ots_tunnel_operator.assess.spark.snapshot_state import SnapshotState
from ots_tunnel_operator.assess.verdict import verdict_document
from ots_tunnel_operator.assess.worker_pods.place import recorded_place
from ots_tunnel_operator.plan.actions import Plan
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.report.condition_rules import decide_conditions
from ots_tunnel_operator.report.conditions import build
from ots_tunnel_operator.report.late_start import lost_so_far
from ots_tunnel_operator.report.refusals import find_refusals
from ots_tunnel_operator.reset.record import recorded_loss
from ots_tunnel_operator.times import parse_time, timestamp
from ots_tunnel_operator.world.absence import Failure, Missing
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.report import RefusedCount
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World

Status = dict[str, Any]

#: The figures that stay as they were while nothing can be observed, with the time that marks them.
MARKS = frozenset({"observedTime"})
OBSERVED = (*MARKS, "channels", "base", "lag", "throughput")


#: What is kept of a tunnel that is gone.
_LAST_KNOWN = ("lastStage", "consumedUpTo")


def build_status(world: World, assessment: Assessment, plan: Plan) -> Status:
    """The whole status in camelCase; unknown fields are absent."""
    world = shown(of_recorded(world))
    pods, refusals = tuple(pod for pod in world.pods if pod.is_alive), find_refusals(world)
    status: Status = {
        "observedGeneration": world.resource.generation,
        "observedTime": timestamp(observed_time(world)),
        "phase": phase(world, assessment, plan),
        "replicas": len(pods),
        "readyReplicas": sum(pod.ready for pod in pods),
        "selector": names.selector_text(world.resource.name),
        "tunnel": _tunnel(world),
        "destination": _destination(world, assessment),
        "filesPlace": recorded_place(world) or None,
        "channels": _channels(world, plan, pods),
        "base": _base(world, assessment),
        "lag": None if plan.completed else _lag(world, assessment),
        "throughput": _throughput(world, assessment, pods),
        "possibleGaps": gap_documents(assessment.gaps[:MAX_GAPS]) or None,
        "readUntil": assessment.read_mark.document() if assessment.read_mark is not None else None,
        "verdict": verdict_document(assessment.verdict) if assessment.verdict is not None else None,
        "refused": refusals.document(),
        "reset": world.resource.status.get("reset"),
        "lost": lost_so_far(world, assessment.read_mark),
        "workers": _workers(pods, refusals.counted),
        "autoscaling": dict(assessment.scaling.document),
        "podMonitor": world.resource.status.get("podMonitor"),
        "snapshot": _snapshot(world, assessment),
        "spark": _query(assessment.query, world),
        "conditions": build(
            decide_conditions(world, assessment, plan),
            world.resource.status.get("conditions") or (),
            generation=world.resource.generation,
            now=world.now,
        ),
    }
    if find_unobserved(world) is not None:
        before = world.resource.status
        status |= {key: before.get(key) for key in OBSERVED if status[key] is None or key in MARKS}
    return {key: value for key, value in status.items() if value is not None}


def phase(world: World, assessment: Assessment, plan: Plan) -> str:
    """status.phase: a one-word summary for people; programs read the conditions."""
    problem = plan.problem or assessment.trouble
    if problem is not None and problem.stalled:
        return "Failed"
    if world.resource.spec.suspend:
        return "Suspended"
    if plan.completed:
        return "Completed"
    if not world.resource.recorded_tunnel.get("id") and not world.resource.recorded_snapshot:
        return "Pending" if plan.problem is not None else "Preparing"
    if assessment.snapshot.state is not SnapshotState.NOT_NEEDED:
        return "Preparing" if assessment.snapshot.state is SnapshotState.AWAITING_STREAM else "BaseData"
    if not isinstance(world.tunnel, Tunnel):
        before = world.resource.status.get("phase")
        return str(before) if before in ("BaseData", "Streaming") else "Preparing"
    if not is_initialised(world.tunnel.description):
        return "Preparing"
    return "BaseData" if world.tunnel.description.tunnel.stage == Stage.BASE else "Streaming"


def _tunnel(world: World) -> Status | None:
    recorded = dict(world.resource.recorded_tunnel)
    if isinstance(world.tunnel, Tunnel) and recorded.get("id") == world.tunnel.description.tunnel.tunnel_id:
        source, info = world.resource.spec.source, world.tunnel.description.tunnel
        is_tunnel = source.stream is None
        recorded |= (
            tunnel_record(info, recorded, source.endpoint) if is_tunnel else stream_record(recorded["id"], source)
        )
        recorded = {key: value for key, value in recorded.items() if key not in _LAST_KNOWN}
    elif isinstance(world.tunnel, Tunnel | Missing) or isinstance(world.source, Missing):
        # the recorded tunnel is gone: it has no stage any more
        stage = recorded.pop("stage", None)
        recorded |= _last_known(world, stage)
    elif isinstance(world.tunnel, Failure) and world.tunnel.problem.reason is Reason.TUNNEL_EXPIRED:
        recorded |= _last_known(world, recorded.get("stage"))
    if isinstance(world.source, Table) and world.source.stream_retention_seconds and recorded:
        recorded["streamRetentionSeconds"] = world.source.stream_retention_seconds
    # an empty one is what a definition that lacks the fields keeps of a record
    return recorded if recorded or "tunnel" in world.resource.status else None


def _last_known(world: World, stage: str | None) -> Status:
    """What a reset has to know of a tunnel that is gone: how far it came, by the last look at it."""
    until = (world.resource.status.get("lag") or {}).get("consumedUpTo")
    known = dict(zip(_LAST_KNOWN, (stage, until), strict=True))
    recorded = world.resource.recorded_tunnel
    return {key: value for key, value in known.items() if value and recorded.get("id") and key not in recorded}


def _destination(world: World, assessment: Assessment) -> Status | None:
    """The record of the destination; one of an earlier release learns when its table was created.

    While the table counts as lost it does not: what is there may be another one.
    """
    recorded: Status | None = world.resource.status.get("destination")
    created = creation_text(world.destination)
    is_certain = world.resource.is_destination_recorded and assessment.verdict is None
    if not recorded or created is None or not is_certain or world.resource.destination_created is not None:
        return recorded
    return recorded | {"createdTime": created}


def _channels(world: World, plan: Plan, pods: tuple[Pod, ...]) -> Status | None:
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        return None
    counts = count_channels(world.tunnel.description)
    ready = [pod for pod in pods if pod.ready]
    # the fewest and the most are those of all workers: one that cannot be asked may have either
    owned = [_held(pod) for pod in ready] if all(pod.report is not None for pod in ready) else []
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


def _held(pod: Pod) -> int:
    """Number of channels that a worker has now, without finished ones and ones that it handed back."""
    report = pod.report
    return sum(channel.state in HELD for channel in report.channels) if report is not None else 0


def _base(world: World, assessment: Assessment) -> Status | None:
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


def _lag(world: World, assessment: Assessment) -> Status | None:
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
        # what a reset has given up never comes, however far the workers have read
        status["caughtUp"] = lag.caught_up and recorded_loss(world.resource.status) is None
    return status


def _unreported(lag: Lag) -> Status:
    """How many shards no worker reports: those whose lag their checkpoint tells, and those whose lag is not known."""
    silent = [channel for channel in lag.channels if channel.worker is None]
    unknown = sum(channel.seconds is None for channel in silent)
    return {"byCheckpoint": len(silent) - unknown, "notLookedAt": unknown}


def _throughput(world: World, assessment: Assessment, pods: tuple[Pod, ...]) -> Status | None:
    """Rate of all workers, only if every one that could move rows has told its own; rows as counted by the service.

    While Spark copies, nobody knows the rate: 0 would be the rate of workers that are not there.
    """
    status: Status = {}
    figures = assessment.query.figures
    reports = [pod.report for pod in pods if pod.ready]
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
    if status and reports and (limit := worker_limit(world.resource.spec)) is not None:
        # not alone: figures that cannot be observed stay as they were
        status["limitRowsPerSecond"] = limit * len(reports)
    return status or None


def _workers(pods: tuple[Pod, ...], refused: Mapping[str, RefusedCount]) -> list[Status]:
    """The pods that have a place in the status, by name."""
    listed = (pod for pod in pods if pod.name in refused)
    return [_worker(pod, refused) for pod in sorted(listed, key=lambda pod: pod.name)]


def _worker(pod: Pod, refused: Mapping[str, RefusedCount]) -> Status:
    status: Status = {"name": pod.name, "ready": pod.ready}
    if (count := refused.get(pod.name)) is not None and count.records:
        status |= {"refusedRecords": count.records, "refusedKeys": count.keys}
    report = pod.report
    if report is None:
        return status
    lags = [
        0 if channel.caught_up else channel.lag_seconds
        for channel in report.channels
        if channel.state in HELD and (channel.caught_up or channel.lag_seconds is not None)
    ]
    if report.client_id:
        status["clientId"] = report.client_id
    status["channels"] = _held(pod)
    if report.busy_percent is not None:
        status["busyPercent"] = min(100, round(report.busy_percent, -1))
    if lags:
        status["lagSeconds"] = round_lag(max(seconds or 0 for seconds in lags))
    return status


def _query(query: Query, world: World) -> Status | None:
    """What is known of the query; its figures only while a driver follows the tunnel."""
    if query.state is QueryState.NOT_USED or query.application is None:
        return None
    status: Status = {
        "application": names.query_name(world.resource.name),
        "state": query.application.state.value or "NEW",
    }
    if (figures := query.figures) is None or query.recorded is None:
        return status
    status["recordedTime"] = timestamp(query.recorded)
    if figures.batch_id is not None:
        status["batchId"] = figures.batch_id
    if figures.rows_per_second is not None:
        status["rowsPerSecond"] = round_figure(figures.rows_per_second)
    if figures.lag_seconds is not None:
        status["lagSeconds"] = round_lag(figures.lag_seconds)
    return status


def _snapshot(world: World, assessment: Assessment) -> Status | None:
    recorded, lag = dict(world.resource.recorded_snapshot), assessment.answered_lag
    if not recorded:
        return None
    if (progress := assessment.snapshot.progress) is not None and progress.total is not None:
        recorded.pop("omittedCells", None)
        if progress.omitted is not None:
            recorded["omittedCells"] = progress.omitted
    if recorded.get("state") != COMPLETED:
        application = assessment.snapshot.application
        recorded.pop("state", None)
        if application is not None:
            recorded["state"] = application.state.value or "NEW"
        return recorded
    finished = parse_time(recorded.get("finishedTime"))
    if recorded.get("consistent") is not True and lag is not None and finished is not None:
        point = lag.consumed_up_to
        recorded["consistent"] = bool(lag.caught_up) or (point is not None and point > finished)
    return recorded
