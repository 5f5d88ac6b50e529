"""The status of an object, from world, assessment and plan. Pure. Unknown is absent, never 0."""

from __future__ import annotations

from ots_tunnel.model import Stage
from ots_tunnel_operator import names
from ots_tunnel_operator.api.status import MAX_GAPS
from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.creation import of_recorded
from ots_tunnel_operator.assess.gap import gap_documents
from ots_tunnel_operator.assess.kept_reports import observed_time, shown
from ots_tunnel_operator.assess.lag import is_initialised
from ots_tunnel_operator.assess.observed import find_unobserved
from ots_tunnel_operator.assess.spark.snapshot_state import SnapshotState
from ots_tunnel_operator.assess.verdict import verdict_document
from ots_tunnel_operator.assess.worker_pods.place import recorded_place
from ots_tunnel_operator.plan.actions import Plan
from ots_tunnel_operator.report import Status
from ots_tunnel_operator.report.condition_rules import decide_conditions
from ots_tunnel_operator.report.conditions import build
from ots_tunnel_operator.report.late_start import lost_so_far
from ots_tunnel_operator.report.progress_status import base_status, channels_status, lag_status, throughput_status
from ots_tunnel_operator.report.refusals import find_refusals
from ots_tunnel_operator.report.side_status import destination_status, tunnel_status
from ots_tunnel_operator.report.spark_status import query_status, snapshot_status
from ots_tunnel_operator.report.worker_status import workers_status
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World

#: The figures that stay as they were while nothing can be observed, with the time that marks them.
MARKS = frozenset({"observedTime"})
OBSERVED = (*MARKS, "channels", "base", "lag", "throughput")


def build_status(world: World, assessment: Assessment, plan: Plan) -> Status:
    """The whole status in camelCase; unknown fields are absent."""
    world = shown(of_recorded(world))
    pods, refusals = tuple(pod for pod in world.pods if pod.is_alive), find_refusals(world, completed=plan.completed)
    status: Status = {
        "observedGeneration": world.resource.generation,
        "observedTime": timestamp(observed_time(world)),
        "phase": phase(world, assessment, plan),
        "replicas": len(pods),
        "readyReplicas": sum(pod.ready for pod in pods),
        "selector": names.selector_text(world.resource.name),
        "tunnel": tunnel_status(world),
        "destination": destination_status(world, assessment),
        "filesPlace": recorded_place(world) or None,
        "channels": channels_status(world, plan, pods),
        "base": base_status(world, assessment),
        "lag": None if plan.completed else lag_status(world, assessment),
        "throughput": throughput_status(world, assessment, pods),
        "possibleGaps": gap_documents(assessment.gaps[:MAX_GAPS]) or None,
        "readUntil": assessment.read_mark.document() if assessment.read_mark is not None else None,
        "verdict": verdict_document(assessment.verdict) if assessment.verdict is not None else None,
        "refused": refusals.document(),
        "reset": world.resource.status.get("reset"),
        "lost": lost_so_far(world, assessment.read_mark),
        "workers": workers_status(pods, refusals.counted),
        "autoscaling": dict(assessment.scaling.document),
        "podMonitor": world.resource.status.get("podMonitor"),
        "snapshot": snapshot_status(world, assessment),
        "spark": query_status(assessment.query, world),
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
