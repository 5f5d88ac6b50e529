"""What each condition says: pure, from world, plan and lag (docs/architecture.md 6.3 and SinkReady).

Messages hold no figure that moves by itself, so that an idle or steadily running object causes no write.
"""

from __future__ import annotations

from collections.abc import Mapping

from ots_tunnel.model import Credentials
from ots_tunnel_operator.assess.degradation import find_degradation
from ots_tunnel_operator.assess.lag import Lag, count_channels, is_initialised
from ots_tunnel_operator.plan.actions import Plan
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.report.conditions import Verdict
from ots_tunnel_operator.world import Failure, Pod, Table, Tunnel, Unread, World


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
    problem = plan.problem or find_degradation(world, plan.snapshot, lag)
    if problem is not None:
        return Verdict(True, problem.reason, problem.message)
    return Verdict(False, Reason.AS_EXPECTED)


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
