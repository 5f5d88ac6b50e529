"""The steps of a reset that is under way, each found by the records alone. Pure.

    tunnel.id is the former one    the service has it         delete it, by its id, as was allowed at the begin
                                   it has none, or another    forget it, and everything that was known of it; record
                                                              where the next one begins, and what is lost
    tunnel.id is empty             no tunnel                  create one, with the intent in the status before it
                                   one that is ours, or is    record it, and the reset as Done, in one write
                                   to be adopted

A request that takes over one whose tunnel is forgotten already records its own start, and its own loss, as it begins.

Workers and Spark stay stopped until it is done, also where somebody resumes the object meanwhile. A copy by Spark
whose last write is not proven may be written to for SPARK_SECONDS more (`assess.last_write`), wherever its tasks run:
it is forgotten after that. A reset is not done while the status says Completed: that is taken back first.
"""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel.snapshot.record import CUT_OFF_SECONDS
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.draining import draining
from ots_tunnel_operator.assess.spark.snapshot import COMPLETED, LONGEST_WRITE_DEADLINE, SPLIT_DEADLINE
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, SPARK_APPLICATION
from ots_tunnel_operator.plan.actions import DeleteObject, DeleteTunnel, Plan, RecordStatus, Wait
from ots_tunnel_operator.plan.reset_create import create_next
from ots_tunnel_operator.plan.reset_facts import found_tunnel, reset_facts
from ots_tunnel_operator.plan.reset_forget import OF_FORMER, forgotten
from ots_tunnel_operator.plan.snapshot import suspend_snapshot
from ots_tunnel_operator.plan.stopping import scale_down
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.reset.facts import Found
from ots_tunnel_operator.reset.forms import FORMS
from ots_tunnel_operator.reset.record import Running, done
from ots_tunnel_operator.reset.request import Existing, Form, Request
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.world import World

#: Seconds after the begin of a reset in which tasks of a copy by Spark may still write.
SPARK_SECONDS = CUT_OFF_SECONDS + SPLIT_DEADLINE + LONGEST_WRITE_DEADLINE


def waiting(request: Request) -> Wait:
    """What an object waits for while it is reset."""
    return Wait(Reason.RESETTING, f"the reset {request.form} of token {request.token!r} is being carried out")


def go_on(world: World, assessment: Assessment, settings: Settings, reset: Running) -> Plan:
    """The next step of a reset that is under way.

    Args:
        world: what was observed.
        assessment: of this world.
        settings: of the process.
        reset: as recorded.
    """
    wait = waiting(reset.request)
    if still := draining(world, assessment.snapshot, assessment.query):
        actions = (*scale_down(world, assessment), *(suspend_snapshot(world, assessment.snapshot, settings) or ()))
        return Plan(actions, replace(wait, message=f"the reset waits: {still}"))
    if world.elder is not None:
        return Plan(wait=wait, problem=assessment.problem)
    if assessment.was_completed:
        # what is written first: it would count as completed with the next tunnel as well
        return Plan(wait=wait)
    if world.resource.spec.wire_type is None:
        return _forget_copy(world, reset, wait) or _done_without_tunnel(world, wait)
    if world.resource.recorded_tunnel.get("id"):
        return _release(world, assessment, reset, wait)
    return _forget_copy(world, reset, wait) or create_next(world, assessment, settings, reset, wait)


def _release(world: World, assessment: Assessment, reset: Running, wait: Wait) -> Plan:
    """Delete the former tunnel where it is there, and forget it."""
    match found_tunnel(world):
        case None:
            return Plan(wait=wait, problem=assessment.problem)
        case Found.RECORDED:
            return _delete(world, reset, wait)
        case _:
            return _forget_copy(world, reset, wait) or _forget(world, assessment, reset, wait)


def _delete(world: World, reset: Running, wait: Wait) -> Plan:
    tunnel_id = str(world.resource.recorded_tunnel["id"])
    if reset.request.existing is Existing.DELETE and world.resource.recorded_tunnel.get("createdByOperator") is True:
        return Plan((DeleteTunnel(tunnel_id),), wait, again=True)
    there = f"tunnel {tunnel_id} is there, and may not be deleted: ask with another token and existingTunnel Delete"
    return Plan(wait=replace(wait, message=f"the reset waits: {there}"))


def _forget_copy(world: World, reset: Running, wait: Wait) -> Plan | None:
    """Remove what is left of a copy by Spark before the next one; None where nothing is."""
    resource, name = world.resource, names.snapshot_name(world.resource.name)
    if reset.request.form is not Form.NEW_BASE or not resource.spec.uses_spark:
        return None
    recorded = resource.recorded_snapshot
    if recorded and recorded.get("state") != COMPLETED and world.now < (safe := reset.since + SPARK_SECONDS):
        return Plan(wait=replace(wait, message=f"tasks of the former copy may write until {timestamp(safe)}"))
    removals = (DeleteObject(SPARK_APPLICATION, name), DeleteObject(CONFIG_MAP, name))
    left = [(removal, world.child(removal.kind.kind, name)) for removal in removals]
    if all(found is None for _, found in left):
        return None
    # what is going already may be held by somebody's finalizer: to delete it again and again hurries nothing
    actions = tuple(
        removal for removal, found in left if found is not None and not found["metadata"].get("deletionTimestamp")
    )
    going = f"{name}, of the former copy, is being removed"
    return Plan(actions, wait if actions else replace(wait, message=f"the reset waits: {going}"), again=bool(actions))


def _done_without_tunnel(world: World, wait: Wait) -> Plan:
    reset = done("", "the copy by Spark and its record are forgotten: every row is copied again", world.now)
    change = {**dict.fromkeys(OF_FORMER), "snapshot": None, "lost": None, "reset": reset}
    return Plan((RecordStatus(change),), wait, again=True)


def _forget(world: World, assessment: Assessment, reset: Running, wait: Wait) -> Plan:
    """Forget the former tunnel; what was delivered of it was recorded before it was deleted."""
    facts = reset_facts(world, assessment)
    if isinstance(facts, str):
        return Plan(wait=replace(wait, message=f"the reset waits: {facts}"), problem=assessment.problem)
    loss = FORMS[reset.request.form].loss(reset.request, replace(facts, delivered_until=reset.delivered_until))
    change = forgotten(reset.request, loss, world.resource, assessment)
    return Plan((RecordStatus(change),), wait, again=True)
