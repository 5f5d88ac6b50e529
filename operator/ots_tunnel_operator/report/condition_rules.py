"""The value of each condition (docs/architecture.md 6.3). Pure.

Theory of operation
-------------------
Thirteen conditions, each from world, assessment and plan alone. `readiness` has Ready, `side_conditions` those of
source, sink and tunnel, `worker_conditions` those of the workers, `scaling_conditions` those of the autoscaler, and
this module the others. The first case of a line that applies decides:

    Ready              plan's problem; suspended; completed (True); trouble with a pod; plan's wait; by a query of
                       Spark: tunnel unread (Unknown), degradation (as below, unless the driver is silent), not
                       following, channel without an owner, driver silent (Unknown), lag unknown (Unknown), True;
                       asleep: tunnel unread (Unknown), degradation (as below), not looked at within the bound
                       (Unknown), True; 0 replicas; and while workers run: tunnel unread (Unknown); base data;
                       degradation, but for those beside the flow (`BESIDE_THE_FLOW`); channel without an owner, or of
                       a worker that is gone; lag unknown (Unknown); True
    Progressing        True while new workers wait for their turn, or the plan waits
    Degraded           True with the plan's problem, else with trouble (`find_trouble`), else with a degradation
                       (`find_degradation`), else once completed with what is missing and not accepted, else with
                       records that were left out (`find_refused`), else with a PodMonitor that cannot be made, or
                       not be removed
    Stalled            True with a problem or trouble that needs a human (`STALLED`)
    CredentialsValid   False with a problem that names it, of the plan or of what could not be read (as for the next
                       two); True after an answer of source and sink; else Unknown
    SinkReady          False with a problem that names it; True once ensured and while no worker reports an error; False
                       while creating; else Unknown; False while writes of a worker fail (`find_sink_errors`); where
                       only workers reach the sink, Unknown until one of them reports an answer of it; of a query of
                       Spark True while it follows the tunnel and has written a batch, else Unknown
    TunnelReady        False with a problem that names it; True once initialised; Unknown when it was not read; False
                       while it is created or initialises
    WorkersAvailable   True where as many pods are ready as wanted
    Rebalancing        True while a channel is closing or has no living worker, and a worker is ready to take it
    ScalingActive      missing without spec.autoscaling, like the next one; False with mode Disabled, while workers are
                       stopped, and once the lag was unknown in three looks; as it was in the first two; else True
    ScalingLimited     True at maxReplicas, at the number of channels, after a scale-up that did not help, and where
                       another client writes the number
    Suspended          True once suspended, the Deployment is at 0, and every worker and the applications of Spark have
                       ended
    Completed          True once everything is delivered: EndTimeReached where channels stay open at the end time,
                       CompletedWithLoss where something is known to be missing (`report.missing`)

A problem therefore appears in Ready, Degraded, Stalled and the conditions that it names, with one reason. None as a
value is Unknown: what was not observed is never claimed (docs/architecture.md rule 11). Where the problem itself is
that a known source, sink or tunnel could not be looked at, these conditions are Unknown instead of False.

Messages contain no figure that changes by itself, so that an idle or steadily running object causes no write.

Example: the source's Secret is deleted. The next read of the Secret gives SecretNotFound with the condition
CredentialsValid: Ready=False, Degraded=True, CredentialsValid=False, all with that reason. Stalled stays False, because
the Secret may come back. WorkersAvailable stays True: the workers keep running with the credentials that they have.
"""

from __future__ import annotations

from collections.abc import Mapping

from ots_tunnel.model import ChannelStatus
from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.draining import draining
from ots_tunnel_operator.plan.actions import Plan
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.report.conditions import ConditionValue, completed_with_loss
from ots_tunnel_operator.report.missing import Missing, find_missing
from ots_tunnel_operator.report.readiness import ready
from ots_tunnel_operator.report.refusals import find_refused
from ots_tunnel_operator.report.scaling_conditions import scaling_conditions
from ots_tunnel_operator.report.side_conditions import credentials, sink, tunnel
from ots_tunnel_operator.report.worker_conditions import available, rebalancing
from ots_tunnel_operator.world.absence import Failure
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World


def decide_conditions(world: World, assessment: Assessment, plan: Plan) -> Mapping[str, ConditionValue]:
    """A value for every condition type that the object has."""
    degraded = _degraded(world, assessment, plan)
    return {
        "Ready": ready(world, assessment, plan, degraded),
        "Progressing": _progressing(plan),
        "Degraded": degraded,
        "Stalled": _stalled(assessment, plan),
        "CredentialsValid": credentials(world, assessment, plan),
        "SinkReady": sink(world, assessment, plan),
        "TunnelReady": tunnel(world, assessment, plan),
        "WorkersAvailable": available(world, plan),
        "Rebalancing": rebalancing(world, plan),
        **scaling_conditions(world, assessment.scaling),
        "Suspended": _suspended(world, assessment),
        "Completed": _completed(world, plan, find_missing(world, assessment.gaps)),
    }


def _progressing(plan: Plan) -> ConditionValue:
    if plan.held is not None:
        return ConditionValue(True, plan.held.reason, plan.held.message)
    if plan.wait is not None:
        return ConditionValue(True, plan.wait.reason, plan.wait.message)
    return ConditionValue(False, Reason.AS_EXPECTED)


def _stalled(assessment: Assessment, plan: Plan) -> ConditionValue:
    problem = plan.problem or assessment.trouble
    if problem is not None and problem.stalled:
        return ConditionValue(True, problem.reason, problem.message)
    return ConditionValue(False, Reason.AS_EXPECTED)


def _degraded(world: World, assessment: Assessment, plan: Plan) -> ConditionValue:
    problem = plan.problem or assessment.trouble or assessment.degradation
    missing = find_missing(world, assessment.gaps)
    if problem is None and plan.completed and missing is not None and not missing.accepted:
        return completed_with_loss(missing)
    problem = problem or find_refused(world)
    if problem is None and isinstance(world.pod_monitor, Failure):
        problem = world.pod_monitor.problem
    if problem is not None:
        return ConditionValue(True, problem.reason, problem.message)
    return ConditionValue(False, Reason.AS_EXPECTED)


def _suspended(world: World, assessment: Assessment) -> ConditionValue:
    if not world.resource.spec.suspend:
        return ConditionValue(False, Reason.NOT_SUSPENDED)
    if still := draining(world, assessment.snapshot, assessment.query):
        return ConditionValue(False, Reason.SUSPENDING, still)
    return ConditionValue(True, Reason.SUSPEND_REQUESTED, "spec.suspend is true")


def _completed(world: World, plan: Plan, missing: Missing | None) -> ConditionValue:
    if not plan.completed:
        source = world.resource.spec.source
        if source.kind == "BaseData":
            return ConditionValue(False, Reason.NOT_COMPLETED)
        if source.end_time is None:
            return ConditionValue(False, Reason.STREAM_OPEN)
        return ConditionValue(False, Reason.STREAM_OPEN, f"not every {source.part} was read up to the end time yet")
    if missing is not None:
        return completed_with_loss(missing)
    if world.resource.wire_type is None:
        return ConditionValue(True, Reason.SNAPSHOT_DONE, "every split is copied")
    channels = world.tunnel.description.channels if isinstance(world.tunnel, Tunnel) else ()
    ended = bool(channels) and all(channel.status is ChannelStatus.TERMINATED for channel in channels)
    if world.resource.spec.source.end_time is not None and not ended:
        return ConditionValue(True, Reason.END_TIME_REACHED, "every change up to the end time is delivered")
    part = world.resource.spec.source.part
    return ConditionValue(True, Reason.ALL_CHANNELS_TERMINATED, f"every {part} has been read to its end")
