"""What a look tells a reset to decide by. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor

from ots_tunnel.model import Stage, TunnelDescription
from ots_tunnel_operator.assess.adoption import spec_mismatch
from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.completion import end_time
from ots_tunnel_operator.assess.creation import is_recreated
from ots_tunnel_operator.assess.lag import is_initialised, measure
from ots_tunnel_operator.assess.spark.snapshot import Snapshot
from ots_tunnel_operator.assess.spark.snapshot_state import SnapshotState
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.reset.facts import Facts, Found
from ots_tunnel_operator.reset.record import running
from ots_tunnel_operator.reset.request import Form
from ots_tunnel_operator.reset.status_facts import delivered_until, is_past_base, kept_since
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world.absence import Failure, Missing
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World

#: Verdicts and problems that say that the destination does not hold what was copied.
_LOST = frozenset({Reason.DESTINATION_BEHIND_TUNNEL, Reason.DESTINATION_CHANGED})


def reset_facts(world: World, assessment: Assessment) -> Facts | str:
    """The facts about an object; a text that says what could not be seen where that may decide.

    Args:
        world: what was observed.
        assessment: of this world.
    """
    resource, source = world.resource, world.source
    if not isinstance(source, Table):
        return "the source table could not be read"
    tunnel = resource.spec.source.a_tunnel
    needs_tunnel = resource.spec.wire_type is not None
    found = found_tunnel(world) if needs_tunnel else Found.GONE
    if found is None:
        return "the tunnel could not be read"
    if resource.spec.sink.tablestore is not None and not isinstance(world.destination, Table | Missing):
        return "the destination could not be read"
    end = end_time(world)
    former = former_tunnel(resource)
    return Facts(
        namespace=resource.namespace,
        name=resource.name,
        kind=tunnel.type,
        by_spark=resource.spec.uses_spark,
        table=resource.spec.source.table,
        tunnel=tunnel.name,
        sink="" if resource.spec.sink.tablestore is None else "tablestore",
        former=former,
        is_used=bool(former) if needs_tunnel else bool(resource.recorded_snapshot),
        is_ours=resource.recorded_tunnel.get("createdByOperator") is True,
        found=found,
        mismatch=_mismatch(world),
        creates=tunnel.management_policy == "CreateIfMissing",
        base_copied=_base_copied(world, assessment),
        delivered_until=_delivered_until(world),
        kept_since=_kept_since(world, source),
        end=None if end == float("inf") else end,
        is_destination_lost=_is_lost(world) or any(problem.reason in _LOST for problem in _problems(assessment)),
        is_destination_empty=_is_empty(world),
        now=world.now,
    )


def _problems(assessment: Assessment) -> Iterator[Problem]:
    yield from (problem for problem in (assessment.problem, assessment.verdict) if problem is not None)


def former_tunnel(resource: Resource) -> str:
    """Id of the recorded tunnel, or of the one that the reset under way has forgotten; empty without one."""
    recorded, under_way = str(resource.recorded_tunnel.get("id") or ""), running(resource.status)
    return recorded or (under_way.former if under_way is not None else "")


def found_tunnel(world: World) -> Found | None:
    """The tunnel that has the name now; None where that was not seen."""
    found = world.tunnel
    if isinstance(found, Missing):
        return Found.GONE
    if isinstance(found, Failure) and found.problem.reason is Reason.TUNNEL_EXPIRED:
        return Found.RECORDED
    if not isinstance(found, Tunnel):
        return None
    recorded = world.resource.recorded_tunnel.get("id")
    return Found.RECORDED if found.description.tunnel.tunnel_id == recorded else Found.ANOTHER


def _mismatch(world: World) -> str:
    """Why the tunnel of the name does not fit the spec; empty where it does."""
    if not isinstance(world.tunnel, Tunnel):
        return ""
    return spec_mismatch(world, world.tunnel.description.tunnel) or ""


def _is_lost(world: World) -> bool:
    """Whether this look shows that what was copied is gone; beside a tunnel that is gone, too, no verdict tells."""
    found, spec = world.destination, world.resource.spec
    if spec.sink.tablestore is None:
        return False
    # an object that only follows changes may have had none yet
    is_emptied = spec.source.kind != "Stream" and isinstance(found, Table) and found.empty is True
    return is_emptied or isinstance(found, Missing) or is_recreated(world)


def _is_empty(world: World) -> bool:
    found = world.destination
    return isinstance(found, Missing) or (isinstance(found, Table) and found.empty is True)


def _base_copied(world: World, assessment: Assessment) -> bool | None:
    """Whether every existing row was copied before, or none is wanted; None is unknown."""
    resource, under_way = world.resource, running(world.resource.status)
    if resource.spec.source.kind == "Stream" or resource.is_without_base:
        return True
    if under_way is not None and not resource.recorded_tunnel.get("id"):
        # a reset that begins with changes was allowed, because they were copied
        return under_way.request.form is not Form.NEW_BASE
    if resource.spec.uses_spark:
        return _is_copied(assessment.snapshot)
    return _is_past_base(world)


def _is_copied(snapshot: Snapshot) -> bool | None:
    """Whether Spark has copied every existing row, and can write none any more; None where it may still write one."""
    if not snapshot.is_complete:
        return False
    return True if snapshot.state in (SnapshotState.NOT_NEEDED, SnapshotState.DONE) else None


def _is_past_base(world: World) -> bool | None:
    """Whether the recorded tunnel has delivered every existing row, by this look or the last one that saw it."""
    seen = _recorded_tunnel(world)
    if seen is None:
        return is_past_base(world.resource.status)
    return is_initialised(seen) and seen.tunnel.stage == Stage.STREAM


def _recorded_tunnel(world: World) -> TunnelDescription | None:
    """The recorded tunnel as this look has seen it; None where it has not."""
    if not isinstance(world.tunnel, Tunnel) or found_tunnel(world) is not Found.RECORDED:
        return None
    return world.tunnel.description


def _delivered_until(world: World) -> float | None:
    seen = _recorded_tunnel(world)
    lag = None if seen is None else measure(seen, world.pods, world.now)
    measured = None if lag is None else lag.consumed_up_to
    window = world.resource.spec.source.window
    begin = {} if window is None else window.model_dump(mode="json", by_alias=True, exclude_none=True)
    return delivered_until(world.resource.status, begin, measured)


def _kept_since(world: World, source: Table) -> float | None:
    """Since when the stream certainly keeps every change; None is unknown.

    It has none from before it was enabled. One that is as old as the tunnel, which may have enabled it, has every
    change that the tunnel was to deliver.
    """
    kept, enabled = kept_since(source.stream_retention_seconds, world.now), source.stream_start
    created = parse_time(world.resource.recorded_tunnel.get("createdTime"))
    # times of the status have whole seconds
    is_as_old = enabled is not None and created is not None and floor(enabled) <= created
    return kept if kept is None or enabled is None or is_as_old else max(kept, enabled)
