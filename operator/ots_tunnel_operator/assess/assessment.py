"""Everything that one pass derives from its world, computed once and read by plan and report."""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel_operator.assess.completion import is_completed, was_completed
from ots_tunnel_operator.assess.creation import of_recorded
from ots_tunnel_operator.assess.degradation import find_degradation
from ots_tunnel_operator.assess.forecast import base_eta, retention_ahead, retention_used
from ots_tunnel_operator.assess.gap import Gap
from ots_tunnel_operator.assess.gaps import find_gaps
from ots_tunnel_operator.assess.kept_reports import shown
from ots_tunnel_operator.assess.lag import Lag, measure, without_stale
from ots_tunnel_operator.assess.preflight import find_problem, find_verdict
from ots_tunnel_operator.assess.read_mark import ReadMark, read_mark
from ots_tunnel_operator.assess.scaling.peeking import is_paused, is_read_to_its_end
from ots_tunnel_operator.assess.scaling.scaling import Scaling, assess_scaling, stopped_by
from ots_tunnel_operator.assess.service_clock import service_now
from ots_tunnel_operator.assess.spark.query import Query, assess_query
from ots_tunnel_operator.assess.spark.query_lag import lag_of_query, unread_behind
from ots_tunnel_operator.assess.spark.query_state import QueryState
from ots_tunnel_operator.assess.spark.snapshot import Snapshot, assess_snapshot
from ots_tunnel_operator.assess.worker_pods.trouble import find_trouble
from ots_tunnel_operator.reasons import Problem
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the observations of one pass mean."""

    problem: Problem | None
    """The first thing that prevents progress; None where nothing does."""
    snapshot: Snapshot
    query: Query
    lag: Lag | None
    """As shown, also from kept reports; None before the stream phase, or while the tunnel is unknown."""
    answered_lag: Lag | None
    """From the answers of this look alone: what is recorded for good relies on it."""
    was_completed: bool
    """Whether the status already records that everything is delivered."""
    is_completed: bool
    """Whether everything that the tunnel has to deliver is delivered now."""
    deployed_replicas: int
    """Workers that the Deployment asks for; 0 without a Deployment."""
    base_eta: int | None
    """Seconds until every existing row is copied; None while unknown."""
    retention_used: int | None
    """Percent of the stream's retention that unconsumed changes use; None while unknown."""
    verdict: Problem | None
    """What outlives this look, to be recorded; it may stand behind another problem."""
    degradation: Problem | None
    """The most severe problem that does not prevent progress."""
    scaling: Scaling
    """How many workers are wanted, and why."""
    trouble: Problem | None = None
    """What is wrong with the pods of the workers, although they may go on."""
    gaps: tuple[Gap, ...] = ()
    """Changes that may be missing."""
    read_mark: ReadMark | None = None
    """When every channel had certainly been read to its end; None while that is not recorded."""


def assess(world: World, *, spark_missing_seconds: float) -> Assessment:
    """Assess a world.

    Args:
        world: what was observed.
        spark_missing_seconds: an application not picked up for so long means that there is no Spark operator.
    """
    everything, world = world, of_recorded(world)
    snapshot = assess_snapshot(world, missing_seconds=spark_missing_seconds)
    query = assess_query(world, missing_seconds=spark_missing_seconds)
    description = world.tunnel.description if isinstance(world.tunnel, Tunnel) else None
    deployment, present = world.deployment, service_now(world)
    seen = shown(world)
    eta = base_eta(world, snapshot)
    mark = read_mark(world, query.progress)
    gaps = find_gaps(world, mark, query.progress)
    problem = find_problem(everything, snapshot, gaps)
    answered = None if description is None else measure(description, world.pods, present)
    completed, done = is_completed(world), was_completed(world)
    scaling = assess_scaling(world, answered, stopped_by(world, problem, snapshot, completed=completed or done))
    # of a paused object nobody reads on
    told = world.peeks if is_paused(world) else without_stale(world.peeks, world.now)
    measured = None if description is None else measure(description, seen.pods, present, told)
    lag = lag_of_query(measured, query)
    # the next worker counts the retention from the consume points, whatever a look without a client has found; of a
    # stream without a tunnel from the checkpoints, where the look has read
    has_stood = is_paused(world) and world.resource.spec.source.stream is None
    points = lag
    if description is not None and (has_stood or len(told) < len(world.peeks)):
        points = measure(description, seen.pods, present, {} if has_stood else world.peeks)
    if query.state is not QueryState.NOT_USED and query.lag_seconds is None and not has_stood:
        points = unread_behind(measured, query, mark, present)
    used, ahead = retention_used(world, points), retention_ahead(world, points, snapshot, eta)
    if completed or done:
        # what comes behind the end is wanted by nobody, and the consume points stand still before it
        lag = used = ahead = None
    elif scaling.is_asleep:
        # consume points stand still, whatever is written: how late the sink is, nobody knows to the second
        lag = used = ahead = None
    elif is_paused(world) and is_read_to_its_end(world):
        # nothing waits, so it is not late, however old its consume points are
        lag = None
    return Assessment(
        problem=problem,
        snapshot=snapshot,
        query=query,
        lag=lag,
        answered_lag=answered,
        was_completed=done,
        is_completed=completed,
        deployed_replicas=0 if deployment is None else int(deployment["spec"].get("replicas", 1)),
        base_eta=eta,
        retention_used=used,
        verdict=find_verdict(everything, snapshot),
        degradation=find_degradation(seen, snapshot, query, lag, ahead),
        scaling=scaling,
        trouble=find_trouble(everything),
        gaps=gaps,
        read_mark=read_mark(world, query.progress, is_last=True) if scaling.falls_asleep else mark,
    )
