"""The last steps of a reset: the next tunnel. Pure."""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.creation import tunnel_record
from ots_tunnel_operator.assess.lag import NANOSECONDS
from ots_tunnel_operator.plan.actions import Plan, RecordStatus, Wait
from ots_tunnel_operator.plan.sight import look
from ots_tunnel_operator.plan.tunnel import tunnel_step
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.reset.forms import Loss
from ots_tunnel_operator.reset.record import Running, done, lost_document, recorded_loss
from ots_tunnel_operator.reset.request import Existing, Form
from ots_tunnel_operator.reset.words import loses
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World


def create_next(world: World, assessment: Assessment, settings: Settings, reset: Running, wait: Wait) -> Plan:
    """Create the next tunnel, or take the one that is to be adopted; nothing while there is a problem.

    Args:
        world: what was observed; the former tunnel is forgotten.
        assessment: of this world.
        settings: of the process.
        reset: as recorded.
        wait: what the object waits for.
    """
    seen = look(world)
    if assessment.problem is not None or isinstance(seen, Wait):
        return Plan(wait=wait, problem=assessment.problem)
    name, adopts = world.resource.spec.source.read_through, reset.request.existing is Existing.ADOPT
    if not isinstance(seen.tunnel, Tunnel):
        if adopts:
            return Plan(wait=wait, problem=_unwanted(f"{name!r}: the tunnel that the reset was to adopt is gone"))
        created = tunnel_step(world, seen, settings)
        return Plan(wait=wait) if created is None else replace(created, wait=wait)
    info, recorded = seen.tunnel.description.tunnel, world.resource.recorded_tunnel
    record = tunnel_record(info, recorded, world.resource.spec.source.endpoint)
    if not record["createdByOperator"] and not adopts:
        found = f"{name!r}: tunnel {info.tunnel_id}, which somebody else created, has the name"
        return Plan(wait=wait, problem=_unwanted(f"{found}: delete it, or ask with another token to adopt it"))
    loss = _final_loss(world, reset, info.create_time_ns / NANOSECONDS)
    message = f"tunnel {info.tunnel_id} replaces {reset.former}. {loses(loss, 'its creation')}"
    finished = done(str(info.tunnel_id), message, world.now)
    return Plan((RecordStatus({"tunnel": record, "reset": finished, "lost": lost_document(loss)}),), wait, again=True)


def _unwanted(text: str) -> Problem:
    return Problem(Reason.TUNNEL_REPLACED, f"spec.source.tunnel.name {text}", ("TunnelReady",))


def _final_loss(world: World, reset: Running, created: float) -> Loss | None:
    """What is lost, now that the tunnel is known; nothing of existing rows that go into an empty table."""
    loss, destination = recorded_loss(world.resource.status), world.destination
    if loss is None:
        return None
    is_empty = isinstance(destination, Missing) or (isinstance(destination, Table) and destination.empty is True)
    if reset.request.form is Form.NEW_BASE and world.resource.spec.sink.tablestore is not None and is_empty:
        return None
    if loss.end is not None:
        return loss
    return replace(loss, end=world.now if reset.request.existing is Existing.ADOPT else created)
