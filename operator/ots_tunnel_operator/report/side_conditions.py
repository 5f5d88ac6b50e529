"""What is known of source, sink and tunnel: the conditions CredentialsValid, SinkReady and TunnelReady. Pure.

The first case that applies is a problem that names the condition. Then it is True after an answer, and Unknown as long
as there is none; of what only workers or a query of Spark reach, their reports tell.
"""

from __future__ import annotations

from ots_tunnel.model import Credentials
from ots_tunnel_operator.api.secrets import secret_uses
from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.degradation import find_sink_errors
from ots_tunnel_operator.assess.lag import is_initialised
from ots_tunnel_operator.plan.actions import Plan
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.report.conditions import ConditionValue, problem_value
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World


def credentials(world: World, assessment: Assessment, plan: Plan) -> ConditionValue:
    """The condition CredentialsValid: whether both sides have answered with the keys that there are."""
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


def sink(world: World, assessment: Assessment, plan: Plan) -> ConditionValue:
    """The condition SinkReady: whether the sink takes what is written."""
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


def tunnel(world: World, assessment: Assessment, plan: Plan) -> ConditionValue:
    """The condition TunnelReady: whether what is followed is there, and can be read."""
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
            return problem_value(world, problem)
    return None


def _credentials_of_workers(world: World) -> ConditionValue | None:
    """Unknown where only workers use a Secret, and they report an error or nothing; None otherwise."""
    path = next((use.path for use in secret_uses(world.resource.spec) if not use.by_operator), None)
    used = _sink_of_workers(world)
    if path is None or used.status:
        return None
    return ConditionValue(None, Reason.UNKNOWN, f"{path}: {used.message}")


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


def _available(world: World, found: Tunnel) -> str:
    """What is there: the stage of a tunnel, or the leases that stand for one."""
    source = world.resource.spec.source
    if source.stream is None:
        return f"stage {found.description.tunnel.stage}"
    return f"no tunnel: the workers share the shards of the stream by {source.words}"
