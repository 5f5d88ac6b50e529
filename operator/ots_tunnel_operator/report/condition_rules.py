"""The value of each condition (docs/architecture.md 6.3). Pure.

Theory of operation
-------------------
Thirteen conditions, each from world, assessment and plan alone. The first case of a line that applies decides:

    Ready              plan's problem; suspended; completed (True); trouble with a pod; plan's wait; by a query of
                       Spark: tunnel unread (Unknown), degradation (as below, unless the driver is silent), not
                       following, channel without an owner, driver silent (Unknown), lag unknown (Unknown), True;
                       asleep: tunnel
                       unread (Unknown), degradation (as below), not looked at within the bound (Unknown), True; 0
                       replicas; and while workers run: tunnel unread (Unknown); base data; degradation, but for those
                       beside the flow (`BESIDE_THE_FLOW`);
                       channel without an owner, or of a worker that is gone; lag unknown (Unknown); True
    Progressing        True while new workers wait for their turn, or the plan waits
    Degraded           True with the plan's problem, else with trouble (`find_trouble`), else with a degradation
                       (`find_degradation`), else with records that were left out (`find_refused`), else with a
                       PodMonitor that cannot be made or removed
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
                       (`report.scaling_conditions`)
    ScalingLimited     True at maxReplicas, at the number of channels, after a scale-up that did not help, and where
                       another client writes the number
    Suspended          True once suspended, the Deployment is at 0, and every worker and the applications of Spark have
                       ended
    Completed          True once everything is delivered: EndTimeReached where channels stay open at the end time

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

from ots_tunnel.model import ChannelStatus, Credentials, Stage
from ots_tunnel_operator import names
from ots_tunnel_operator.api.secrets import secret_uses
from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.degradation import find_sink_errors
from ots_tunnel_operator.assess.draining import draining
from ots_tunnel_operator.assess.lag import Lag, count_channels, is_initialised, orphaned
from ots_tunnel_operator.assess.observed import is_unobserved
from ots_tunnel_operator.assess.spark.query_state import QueryState
from ots_tunnel_operator.plan.actions import Plan
from ots_tunnel_operator.reasons import BESIDE_THE_FLOW, Problem, Reason
from ots_tunnel_operator.report.conditions import ConditionValue
from ots_tunnel_operator.report.refusals import find_refused
from ots_tunnel_operator.report.scaling_conditions import scaling_conditions
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World

_ORPHANED = "one belongs to a worker that is gone, until spec.workers.heartbeatTimeoutSeconds are over"

#: With the word for a channel.
_ASLEEP = (
    "no worker runs, because every change was read: the operator looks at each {part} every "
    "spec.autoscaling.scaleToZero.peekIntervalSeconds, and has done so within the last two of them"
)


def decide_conditions(world: World, assessment: Assessment, plan: Plan) -> Mapping[str, ConditionValue]:
    """A value for every condition type that the object has."""
    degraded = _degraded(world, assessment, plan)
    return {
        "Ready": _ready(world, assessment, plan, degraded),
        "Progressing": _progressing(plan),
        "Degraded": degraded,
        "Stalled": _stalled(assessment, plan),
        "CredentialsValid": _credentials(world, assessment, plan),
        "SinkReady": _sink(world, assessment, plan),
        "TunnelReady": _tunnel(world, assessment, plan),
        "WorkersAvailable": _workers(world, plan),
        "Rebalancing": _rebalancing(world, plan),
        **scaling_conditions(world, assessment.scaling),
        "Suspended": _suspended(world, assessment),
        "Completed": _completed(world, plan),
    }


def _named(kind: str, world: World, assessment: Assessment, plan: Plan) -> ConditionValue | None:
    """The value of a condition by the first problem that names it: the plan's, the world's, what could not be read, a
    verdict that lasts behind another problem, or trouble with a pod.

    Unknown where the problem is that nobody could look.
    """
    credentials = world.source_credentials, world.sink_credentials, *world.worker_secrets
    observed = *credentials, world.source, world.destination, world.tunnel
    failures = [item.problem for item in observed if isinstance(item, Failure)]
    for problem in (plan.problem, assessment.problem, *failures, assessment.verdict, assessment.trouble):
        if problem is not None and kind in problem.conditions:
            return _problem_value(world, problem)
    return None


def _problem_value(world: World, problem: Problem) -> ConditionValue:
    status = None if is_unobserved(world, problem) else False
    return ConditionValue(status, problem.reason, problem.message)


def _ready(world: World, assessment: Assessment, plan: Plan, degraded: ConditionValue) -> ConditionValue:
    if plan.problem is not None:
        return _problem_value(world, plan.problem)
    if world.resource.spec.suspend:
        still = draining(world, assessment.snapshot, assessment.query)
        reason = Reason.SUSPENDING if still else Reason.SUSPEND_REQUESTED
        return ConditionValue(False, reason, f"spec.suspend is true: {still or 'nothing is consumed'}")
    if plan.completed:
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
        reason = Reason.CHANNELS_MOVING if _takers(world) else Reason.CHANNELS_UNOWNED
        return ConditionValue(False, reason, f"not every {part} has a worker")
    if _orphaned(world, world.tunnel):
        reason = Reason.CHANNELS_MOVING if _takers(world) else Reason.CHANNELS_UNOWNED
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
    problem = plan.problem or assessment.trouble or assessment.degradation or find_refused(world)
    if problem is None and isinstance(world.pod_monitor, Failure):
        problem = world.pod_monitor.problem
    if problem is not None:
        return ConditionValue(True, problem.reason, problem.message)
    return ConditionValue(False, Reason.AS_EXPECTED)


def _credentials(world: World, assessment: Assessment, plan: Plan) -> ConditionValue:
    if (named := _named("CredentialsValid", world, assessment, plan)) is not None:
        return named
    answered = isinstance(world.tunnel, Tunnel) or isinstance(world.source, Table)
    sink_answered = isinstance(world.sink_credentials, Credentials) and isinstance(world.destination, Table | Missing)
    if world.resource.spec.sink.tablestore is None:
        sink_answered = True
    if answered and sink_answered and not isinstance(world.source_credentials, Failure):
        return _credentials_of_workers(world) or ConditionValue(True, Reason.AUTHENTICATED)
    where = "the sink" if answered else "the source"
    return ConditionValue(None, Reason.UNKNOWN, f"{where} has answered no call yet")


def _credentials_of_workers(world: World) -> ConditionValue | None:
    """Unknown where only workers use a Secret, and they report an error or nothing; None otherwise."""
    path = next((use.path for use in secret_uses(world.resource.spec) if not use.by_operator), None)
    used = _sink_of_workers(world)
    if path is None or used.status:
        return None
    return ConditionValue(None, Reason.UNKNOWN, f"{path}: {used.message}")


def _sink(world: World, assessment: Assessment, plan: Plan) -> ConditionValue:
    if (named := _named("SinkReady", world, assessment, plan)) is not None:
        return named
    if world.resource.spec.uses_query:
        return _sink_of_query(assessment)
    if world.resource.spec.sink.tablestore is None:
        return _sink_of_workers(world)
    if (errors := find_sink_errors(world)) is not None:
        return ConditionValue(False, errors.reason, errors.message)
    if isinstance(world.destination, Table) and world.resource.is_destination_recorded:
        if _reports_error(world.pods):
            return ConditionValue(None, Reason.UNKNOWN, "the table is there, and a worker reports an error")
        return ConditionValue(True, Reason.SINK_AVAILABLE)
    if plan.wait is not None and plan.wait.reason is Reason.CREATING_DESTINATION:
        return ConditionValue(False, plan.wait.reason, plan.wait.message)
    return ConditionValue(None, Reason.UNKNOWN, "the destination was not read")


def _sink_of_query(assessment: Assessment) -> ConditionValue:
    """A sink that only a query of Spark reaches: what its record tells about it."""
    figures = assessment.query.figures
    if figures is None:
        return ConditionValue(
            None, Reason.UNKNOWN, "only the query reaches it, and it is not known to follow the tunnel now"
        )
    if figures.batch_id is None:
        return ConditionValue(None, Reason.UNKNOWN, "only the query reaches it, and it has written no batch yet")
    return ConditionValue(True, Reason.SINK_AVAILABLE, "the query has written batches")


def _sink_of_workers(world: World) -> ConditionValue:
    """A sink at which only workers look: what they report about it."""
    if (errors := find_sink_errors(world)) is not None:
        return ConditionValue(False, errors.reason, errors.message)
    reports = [pod.report for pod in world.pods if pod.ready and pod.report is not None]
    if not reports:
        return ConditionValue(None, Reason.UNKNOWN, "only workers reach it, and none that is ready has reported")
    if _reports_error(world.pods):
        return ConditionValue(None, Reason.UNKNOWN, "a worker reports an error")
    if any(report.sink is not None and report.sink.has_answered for report in reports):
        return ConditionValue(True, Reason.SINK_AVAILABLE, "it has answered, and workers report no error")
    return ConditionValue(None, Reason.UNKNOWN, "only workers reach it, and none reports an answer of it yet")


def _reports_error(pods: tuple[Pod, ...]) -> bool:
    """Whether a ready worker reports an error: which side it is about cannot be told."""
    reports = [pod.report for pod in pods if pod.ready and pod.report is not None]
    return any(report.error or any(channel.error for channel in report.channels) for report in reports)


def _tunnel(world: World, assessment: Assessment, plan: Plan) -> ConditionValue:
    if world.resource.wire_type is None:
        return ConditionValue(True, Reason.TUNNEL_AVAILABLE, "no tunnel is needed")
    if (named := _named("TunnelReady", world, assessment, plan)) is not None:
        return named
    if isinstance(world.tunnel, Tunnel) and world.resource.recorded_tunnel.get("id"):
        if is_initialised(world.tunnel.description):
            return ConditionValue(True, Reason.TUNNEL_AVAILABLE, _available(world, world.tunnel))
        return ConditionValue(False, Reason.TUNNEL_INITIALISING, "the service is preparing the channels")
    if plan.wait is not None and plan.wait.reason is Reason.CREATING_TUNNEL:
        return ConditionValue(False, plan.wait.reason, plan.wait.message)
    if isinstance(world.tunnel, Unread | Failure):
        return ConditionValue(None, Reason.UNKNOWN, f"the {world.resource.spec.source.whole} was not read")
    is_tunnel = world.resource.spec.source.stream is None
    text = "there is no tunnel yet" if is_tunnel else "the stream is not recorded yet"
    return ConditionValue(False, Reason.CREATING_TUNNEL, text)


def _unread(world: World) -> str:
    return f"the {world.resource.spec.source.whole} could not be read"


def _available(world: World, found: Tunnel) -> str:
    """What is there: the stage of a tunnel, or the leases that stand for one."""
    source = world.resource.spec.source
    if source.stream is None:
        return f"stage {found.description.tunnel.stage}"
    return f"no tunnel: the workers share the shards of the stream by {source.words}"


def _workers(world: World, plan: Plan) -> ConditionValue:
    ready = sum(pod.ready for pod in world.pods if not pod.deleting)
    if not plan.replicas:
        reason = Reason.NO_WORKERS_WANTED
        return ConditionValue(True, reason, "no worker is wanted now")
    if ready >= plan.replicas:
        return ConditionValue(True, Reason.MINIMUM_REPLICAS_AVAILABLE, f"{plan.replicas} workers are ready")
    return ConditionValue(
        False, Reason.WORKERS_UNAVAILABLE, f"{ready} of {plan.replicas} workers are ready{_why(world.pods)}"
    )


def _why(pods: tuple[Pod, ...]) -> str:
    waiting = sorted(f"{pod.name}: {pod.message}" for pod in pods if not pod.ready and pod.message)
    return f"; {waiting[0]}" if waiting else ""


def _rebalancing(world: World, plan: Plan) -> ConditionValue:
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        return ConditionValue(None, Reason.UNKNOWN)
    counts = count_channels(world.tunnel.description)
    moving = counts.closing or counts.unowned or _orphaned(world, world.tunnel)
    takers, part = _takers(world), world.resource.spec.source.part
    if not plan.replicas or not moving:
        return ConditionValue(False, Reason.SETTLED, f"no {part} is moving between workers")
    if not takers:
        return ConditionValue(False, Reason.CHANNELS_UNOWNED, f"{part}s wait for a worker, and none is ready")
    if takers > 1:
        return ConditionValue(True, Reason.CHANNELS_MOVING, f"{part}s are moving to another worker")
    return ConditionValue(True, Reason.CHANNELS_MOVING, f"{part}s are being given to the only worker that is ready")


def _orphaned(world: World, tunnel: Tunnel) -> bool:
    """Whether a channel still belongs to a worker that is gone."""
    return bool(orphaned(tunnel.description, world.pods, names.client_tag_prefix(world.resource.uid)))


def _takers(world: World) -> int:
    """Number of workers that can take a channel."""
    return sum(pod.ready and not pod.deleting for pod in world.pods)


def _suspended(world: World, assessment: Assessment) -> ConditionValue:
    if not world.resource.spec.suspend:
        return ConditionValue(False, Reason.NOT_SUSPENDED)
    if still := draining(world, assessment.snapshot, assessment.query):
        return ConditionValue(False, Reason.SUSPENDING, still)
    return ConditionValue(True, Reason.SUSPEND_REQUESTED, "spec.suspend is true")


def _completed(world: World, plan: Plan) -> ConditionValue:
    if not plan.completed:
        source = world.resource.spec.source
        if source.kind == "BaseData":
            return ConditionValue(False, Reason.NOT_COMPLETED)
        if source.end_time is None:
            return ConditionValue(False, Reason.STREAM_OPEN)
        return ConditionValue(False, Reason.STREAM_OPEN, f"not every {source.part} was read up to the end time yet")
    if world.resource.wire_type is None:
        return ConditionValue(True, Reason.SNAPSHOT_DONE, "every split is copied")
    found = world.tunnel
    ended = isinstance(found, Tunnel) and all(
        channel.status is ChannelStatus.TERMINATED for channel in found.description.channels
    )
    if world.resource.spec.source.end_time is not None and not ended:
        return ConditionValue(True, Reason.END_TIME_REACHED, "every change up to the end time is delivered")
    part = world.resource.spec.source.part
    return ConditionValue(True, Reason.ALL_CHANNELS_TERMINATED, f"every {part} has been read to its end")
