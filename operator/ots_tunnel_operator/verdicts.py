"""What each condition says: pure, from world, plan and lag (operator-anchors 5.3 and SinkReady).

Messages hold no figure that moves by itself, so that an idle or steadily running object causes no write.
"""

from __future__ import annotations

from collections.abc import Mapping

from ots_tunnel.model import Credentials
from ots_tunnel_operator.actions import Plan
from ots_tunnel_operator.conditions import Problem, Reason, Verdict
from ots_tunnel_operator.forecast import retention_ahead
from ots_tunnel_operator.lag import Lag, count_channels, is_initialised, round_lag
from ots_tunnel_operator.world import Failure, Pod, Table, Tunnel, Unread, World

#: Restarts of one worker after which its end counts as a failure and not as an incident.
RESTARTS = 3


def judge(world: World, plan: Plan, lag: Lag | None) -> Mapping[str, Verdict]:
    """A verdict for every condition type."""
    degraded = _degraded(world, plan, lag)
    return {
        "Ready": _ready(world, plan, lag, degraded),
        "Progressing": _progressing(plan),
        "Degraded": degraded,
        "Stalled": _stalled(plan),
        "CredentialsValid": _credentials(world, plan),
        "SinkReady": _sink(world, plan),
        "TunnelReady": _tunnel(world, plan),
        "WorkersAvailable": _workers(world, plan),
        "Rebalancing": _rebalancing(world, plan),
        "Suspended": _suspended(world),
        "Completed": _completed(world, plan),
    }


def _ready(world: World, plan: Plan, lag: Lag | None, degraded: Verdict) -> Verdict:
    if plan.problem is not None:
        return Verdict(False, plan.problem.reason, plan.problem.message)
    if world.resource.spec.suspend:
        return Verdict(False, Reason.SUSPEND_REQUESTED, "spec.suspend is true: nothing is consumed")
    if plan.completed:
        return Verdict(True, Reason.COMPLETED, "everything the tunnel had to deliver is delivered")
    if plan.wait is not None:
        return Verdict(False, plan.wait.reason, plan.wait.message)
    if not plan.replicas:
        return Verdict(False, Reason.NO_WORKERS_WANTED, "spec.replicas is 0: nothing is consumed")
    return _consuming(world, lag, degraded)


def _consuming(world: World, lag: Lag | None, degraded: Verdict) -> Verdict:
    """Ready of an object whose workers run as wanted."""
    if not isinstance(world.tunnel, Tunnel):
        return Verdict(None, Reason.UNKNOWN, "the tunnel could not be asked")
    if world.tunnel.description.tunnel.stage == "ProcessBaseData":
        return Verdict(False, Reason.BASE_DATA_RUNNING, "existing rows are being copied")
    if degraded.status:
        return Verdict(False, degraded.reason, degraded.message)
    if count_channels(world.tunnel.description).unowned:
        return Verdict(False, Reason.CHANNELS_MOVING, "not every channel has a worker")
    if lag is None or lag.seconds is None:
        return Verdict(None, Reason.UNKNOWN, "the lag is not known yet")
    return Verdict(True, Reason.CONSUMING, "every channel has a worker")


def _progressing(plan: Plan) -> Verdict:
    if plan.wait is not None:
        return Verdict(True, plan.wait.reason, plan.wait.message)
    return Verdict(False, Reason.AS_EXPECTED)


def _stalled(plan: Plan) -> Verdict:
    if plan.problem is not None and plan.problem.stalled:
        return Verdict(True, plan.problem.reason, plan.problem.message)
    return Verdict(False, Reason.AS_EXPECTED)


def _degraded(world: World, plan: Plan, lag: Lag | None) -> Verdict:
    found = (
        plan.problem,
        _foreign(world),
        _failing(world),
        _channel_errors(world),
        _at_risk(world, plan, lag),
        _late(world, lag),
    )
    for problem in found:
        if problem is not None:
            return Verdict(True, problem.reason, problem.message)
    return Verdict(False, Reason.AS_EXPECTED)


def _foreign(world: World) -> Problem | None:
    """Clients that are not ours, seen in two polls at least one heartbeat timeout apart (design 3)."""
    timeout = world.resource.spec.worker_settings.heartbeat_timeout_seconds
    ids = sorted(client for client, since in world.foreign_since.items() if world.now - since >= timeout)
    if not ids:
        return None
    return Problem(
        Reason.FOREIGN_CLIENT,
        f"spec.source.tunnel.name {world.resource.spec.source.tunnel.name!r}: {', '.join(ids[:5])} consume it too and "
        f"are no workers of this object: stop them, or give this object a tunnel of its own",
    )


def _failing(world: World) -> Problem | None:
    failing = sorted(
        (pod for pod in world.pods if not pod.ready and pod.restarts >= RESTARTS), key=lambda pod: pod.name
    )
    if not failing:
        return None
    pod = failing[0]
    return Problem(
        Reason.WORKERS_FAILING,
        f"pod {pod.name} ends again and again: {pod.message or 'no last words'}: see its log and mend the cause",
    )


def _channel_errors(world: World) -> Problem | None:
    for pod in sorted(world.pods, key=lambda pod: pod.name):
        if pod.report is None:
            continue
        error = pod.report.error or next((channel.error for channel in pod.report.channels if channel.error), None)
        if error:
            return Problem(
                Reason.CHANNEL_ERRORS,
                f"pod {pod.name}: {error[:300]}: see its log; nothing is dropped, the channel goes on once it can",
            )
    return None


def _at_risk(world: World, plan: Plan, lag: Lag | None) -> Problem | None:
    """Warned early: by what will be used when the base phase ends, where that can be told (design 3, point 6)."""
    limit = world.resource.spec.monitoring.retention_warning_percent
    used = retention_ahead(world, lag, plan.snapshot)
    if used is None or used < limit:
        return None
    return Problem(
        Reason.RETENTION_AT_RISK,
        f"changes not consumed yet use, or will when existing rows are copied, spec.monitoring.retentionWarningPercent "
        f"{limit} or more of the time table {world.resource.spec.source.table!r} keeps its stream; beyond 100 they "
        f"are lost: add workers or executors, see what the sink takes, or let the table keep its stream for longer",
    )


def _late(world: World, lag: Lag | None) -> Problem | None:
    limit = world.resource.spec.monitoring.lag_degraded_seconds
    if lag is None or lag.seconds is None or lag.caught_up or round_lag(lag.seconds) <= limit:
        return None
    return Problem(
        Reason.LAG_HIGH,
        f"the slowest channel is more than spec.monitoring.lagDegradedSeconds {limit} behind: add workers up to the "
        f"number of channels, or see what the sink takes",
    )


def _credentials(world: World, plan: Plan) -> Verdict:
    if plan.problem is not None and "CredentialsValid" in plan.problem.conditions:
        return Verdict(False, plan.problem.reason, plan.problem.message)
    answered = isinstance(world.tunnel, Tunnel) or isinstance(world.source, Table)
    sink_known = world.resource.spec.sink.tablestore is None or isinstance(world.sink_credentials, Credentials)
    if answered and sink_known and not isinstance(world.source_credentials, Failure):
        return Verdict(True, Reason.AUTHENTICATED)
    return Verdict(None, Reason.UNKNOWN, "no call has been answered yet")


def _sink(world: World, plan: Plan) -> Verdict:
    if plan.problem is not None and "SinkReady" in plan.problem.conditions:
        return Verdict(False, plan.problem.reason, plan.problem.message)
    if world.resource.spec.sink.tablestore is None:
        return Verdict(True, Reason.SINK_AVAILABLE)
    if isinstance(world.destination, Table) and world.resource.recorded_destination.get("ensuredTime"):
        return Verdict(True, Reason.SINK_AVAILABLE)
    if plan.wait is not None and plan.wait.reason is Reason.CREATING_DESTINATION:
        return Verdict(False, plan.wait.reason, plan.wait.message)
    return Verdict(None, Reason.UNKNOWN, "the destination was not asked")


def _tunnel(world: World, plan: Plan) -> Verdict:
    if world.resource.spec.wire_type is None:
        return Verdict(True, Reason.TUNNEL_AVAILABLE, "no tunnel is needed")
    if plan.problem is not None and "TunnelReady" in plan.problem.conditions:
        return Verdict(False, plan.problem.reason, plan.problem.message)
    if isinstance(world.tunnel, Tunnel) and world.resource.recorded_tunnel.get("id"):
        if is_initialised(world.tunnel.description):
            return Verdict(True, Reason.TUNNEL_AVAILABLE, f"stage {world.tunnel.description.tunnel.stage}")
        return Verdict(False, Reason.TUNNEL_INITIALISING, "the service is preparing the channels")
    if plan.wait is not None and plan.wait.reason is Reason.CREATING_TUNNEL:
        return Verdict(False, plan.wait.reason, plan.wait.message)
    if isinstance(world.tunnel, Unread | Failure):
        return Verdict(None, Reason.UNKNOWN, "the tunnel was not asked")
    return Verdict(False, Reason.CREATING_TUNNEL, "there is no tunnel yet")


def _workers(world: World, plan: Plan) -> Verdict:
    ready = sum(pod.ready for pod in world.pods if not pod.deleting)
    if not plan.replicas:
        reason = Reason.NO_WORKERS_WANTED
        return Verdict(True, reason, "no workers are wanted now")
    if ready >= plan.replicas:
        return Verdict(True, Reason.MINIMUM_REPLICAS_AVAILABLE, f"{plan.replicas} workers are ready")
    return Verdict(False, Reason.WORKERS_UNAVAILABLE, f"{ready} of {plan.replicas} workers are ready{_why(world.pods)}")


def _why(pods: tuple[Pod, ...]) -> str:
    waiting = sorted(f"{pod.name}: {pod.message}" for pod in pods if not pod.ready and pod.message)
    return f"; {waiting[0]}" if waiting else ""


def _rebalancing(world: World, plan: Plan) -> Verdict:
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        return Verdict(None, Reason.UNKNOWN)
    counts = count_channels(world.tunnel.description)
    if plan.replicas and (counts.closing or counts.unowned):
        return Verdict(True, Reason.CHANNELS_MOVING, "channels are on their way to another worker")
    return Verdict(False, Reason.SETTLED)


def _suspended(world: World) -> Verdict:
    if not world.resource.spec.suspend:
        return Verdict(False, Reason.NOT_SUSPENDED)
    if any(pod.phase in ("Pending", "Running", "Unknown") for pod in world.pods):
        return Verdict(False, Reason.SUSPENDING, "workers are draining")
    return Verdict(True, Reason.SUSPEND_REQUESTED, "spec.suspend is true")


def _completed(world: World, plan: Plan) -> Verdict:
    if not plan.completed:
        stream = world.resource.spec.source.tunnel.type != "BaseData"
        return Verdict(False, Reason.STREAM_OPEN if stream else Reason.NOT_COMPLETED)
    if world.resource.spec.wire_type is None:
        return Verdict(True, Reason.SNAPSHOT_DONE, "every split is copied")
    return Verdict(True, Reason.ALL_CHANNELS_TERMINATED, "every channel has been read to its end")
