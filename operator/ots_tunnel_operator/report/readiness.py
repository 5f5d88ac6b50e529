"""Whether an object delivers as wanted: the value of its condition Ready. Pure; the cases are in `condition_rules`."""

from __future__ import annotations

from ots_tunnel.model import Stage
from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.draining import draining
from ots_tunnel_operator.assess.lag import Lag, count_channels
from ots_tunnel_operator.assess.spark.query_state import QueryState
from ots_tunnel_operator.plan.actions import Plan
from ots_tunnel_operator.reasons import BESIDE_THE_FLOW, Reason
from ots_tunnel_operator.report.conditions import ConditionValue, completed_with_loss, problem_value
from ots_tunnel_operator.report.missing import find_missing
from ots_tunnel_operator.report.worker_conditions import has_orphans, takers
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World

_ORPHANED = "one belongs to a worker that is gone, until spec.workers.heartbeatTimeoutSeconds are over"

#: With the word for a channel.
_ASLEEP = (
    "no worker runs, because every change was read: the operator looks at each {part} every "
    "spec.autoscaling.scaleToZero.peekIntervalSeconds, and has done so within the last two of them"
)


def ready(world: World, assessment: Assessment, plan: Plan, degraded: ConditionValue) -> ConditionValue:
    """The condition Ready.

    Args:
        degraded: the condition Degraded, which ends Ready unless it is about something beside the flow.
    """
    if plan.problem is not None:
        return problem_value(world, plan.problem)
    if world.resource.spec.suspend:
        still = draining(world, assessment.snapshot, assessment.query)
        reason = Reason.SUSPENDING if still else Reason.SUSPEND_REQUESTED
        return ConditionValue(False, reason, f"spec.suspend is true: {still or 'nothing is consumed'}")
    if plan.completed:
        if (missing := find_missing(world, assessment.gaps)) is not None:
            return completed_with_loss(missing)
        return ConditionValue(True, Reason.COMPLETED, "everything that was to be delivered is delivered")
    if assessment.trouble is not None and plan.replicas:
        return ConditionValue(False, assessment.trouble.reason, assessment.trouble.message)
    if plan.wait is not None:
        return ConditionValue(False, plan.wait.reason, plan.wait.message)
    if world.resource.spec.uses_query:
        return _following(world, assessment, degraded)
    if assessment.scaling.is_asleep and not plan.replicas:
        return _sleeping(world, assessment, degraded)
    if not plan.replicas:
        return ConditionValue(False, Reason.NO_WORKERS_WANTED, "spec.replicas is 0: nothing is consumed")
    return _consuming(world, assessment.lag, degraded)


def _consuming(world: World, lag: Lag | None, degraded: ConditionValue) -> ConditionValue:
    """Ready, while workers run as wanted."""
    if not isinstance(world.tunnel, Tunnel):
        return ConditionValue(None, Reason.UNKNOWN, _unread(world))
    if world.tunnel.description.tunnel.stage == Stage.BASE:
        return ConditionValue(False, Reason.BASE_DATA_RUNNING, "existing rows are being copied")
    # neither records that the policy left out nor a missing PodMonitor are a fault of the flow, which goes on
    if degraded.status and degraded.reason not in BESIDE_THE_FLOW:
        # rows may well be copied: nothing of it can be seen
        status = None if degraded.reason is Reason.WORKERS_UNREACHABLE else False
        return ConditionValue(status, degraded.reason, degraded.message)
    part = world.resource.spec.source.part
    if count_channels(world.tunnel.description).unowned:
        reason = Reason.CHANNELS_MOVING if takers(world) else Reason.CHANNELS_UNOWNED
        return ConditionValue(False, reason, f"not every {part} has a worker")
    if has_orphans(world, world.tunnel):
        reason = Reason.CHANNELS_MOVING if takers(world) else Reason.CHANNELS_UNOWNED
        return ConditionValue(False, reason, f"not every {part} has a worker: {_ORPHANED}")
    if lag is None or lag.seconds is None:
        is_of_look = world.resource.spec.source.stream is not None and world.peek_failure
        why = f": {world.peek_failure}" if is_of_look else " yet"
        return ConditionValue(None, Reason.UNKNOWN, f"the lag is not known{why}")
    return ConditionValue(True, Reason.CONSUMING, f"every {part} has a worker")


def _following(world: World, assessment: Assessment, degraded: ConditionValue) -> ConditionValue:
    """Ready, while a query of Spark runs as wanted: until it follows the tunnel, the plan waits for that."""
    silence = assessment.query.message if assessment.query.state is QueryState.SILENT else ""
    why = f": {silence}" if silence else ""
    if degraded.status and degraded.reason not in BESIDE_THE_FLOW and not silence:
        return ConditionValue(False, degraded.reason, degraded.message)
    if isinstance(world.tunnel, Tunnel) and world.tunnel.description.tunnel.stage == Stage.BASE:
        return ConditionValue(False, Reason.BASE_DATA_RUNNING, f"the query of Spark brings existing rows{why}")
    if isinstance(world.tunnel, Tunnel) and count_channels(world.tunnel.description).unowned:
        return ConditionValue(False, Reason.CHANNELS_UNOWNED, f"not every channel is read by the query{why}")
    if silence:
        # changes may well be written: nothing of it can be seen
        return ConditionValue(None, Reason.UNKNOWN, silence)
    if assessment.lag is None or assessment.lag.seconds is None:
        return ConditionValue(None, Reason.UNKNOWN, "the lag is not known yet")
    return ConditionValue(True, Reason.CONSUMING, "the query of Spark reads every channel")


def _sleeping(world: World, assessment: Assessment, degraded: ConditionValue) -> ConditionValue:
    """Ready, while no worker runs because nothing is to be read: only as long as that is known."""
    if not isinstance(world.tunnel, Tunnel):
        return ConditionValue(None, Reason.UNKNOWN, _unread(world))
    if degraded.status and degraded.reason not in BESIDE_THE_FLOW:
        return ConditionValue(False, degraded.reason, degraded.message)
    if any(pod.is_alive for pod in world.pods):
        return ConditionValue(False, Reason.SCALING, "the last worker drains")
    part = world.resource.spec.source.part
    if not assessment.scaling.is_seen:
        why = f": {world.peek_failure}" if world.peek_failure else " yet"
        return ConditionValue(None, Reason.UNKNOWN, f"no worker runs, and not every {part} was looked at{why}")
    return ConditionValue(True, Reason.ASLEEP, _ASLEEP.format(part=part))


def _unread(world: World) -> str:
    return f"the {world.resource.spec.source.whole} could not be read"
