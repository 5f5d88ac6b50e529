"""What comes ahead of the objects that the workers need: the number of workers, and what is recorded. Pure.

The first refusal ends a pass, and an operator may end between any two actions.
"""

from __future__ import annotations

from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.manifests.files_place import files_place
from ots_tunnel_operator.plan.actions import Action, ApplyObject, RecordStatus, ScaleDown, SetReplicas
from ots_tunnel_operator.plan.scaling import Course
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.world.world import World


def number(world: World, assessment: Assessment, step: Course) -> tuple[Action, ...]:
    """What sets the number of workers ahead of everything else; usually the Deployment brings it along.

    What comes before the Deployment may be refused: the workers that are not wanted have to go all the same, and where
    it was refused the last time, the number follows without it.
    """
    if step.replicas == assessment.deployed_replicas or world.deployment is None:
        return ()
    if not step.replicas:
        return (ScaleDown(),)
    return (SetReplicas(step.replicas),) if _was_refused(world) else ()


def with_place(world: World, told: tuple[Action, ...]) -> tuple[Action, ...]:
    """The actions with the record of the place of files, before the first worker can write there.

    Later the Deployment has it. A template that is refused comes before: its place is nobody's.
    """
    wanted = files_place(world.resource.object)
    first = next((number for number, one in enumerate(told) if isinstance(one, ApplyObject)), None)
    if not wanted or first is None or world.deployment is not None or wanted == world.resource.status.get("filesPlace"):
        return told
    return (*told[:first], RecordStatus({"filesPlace": wanted}), *told[first:])


def _was_refused(world: World) -> bool:
    """Whether the status says that the API server, or the object of another client, refused an action."""
    conditions = world.resource.status.get("conditions") or ()
    refusals = {Reason.NAME_CONFLICT, Reason.API_SERVER_REFUSED}
    return any(item.get("type") == "Ready" and item.get("reason") in refusals for item in conditions)


def before_scaling(assessment: Assessment) -> RecordStatus:
    """What is recorded before the number of workers is changed.

    With the last worker the read mark as well: from then on no report tells how far the tunnel was read.
    """
    mark = assessment.read_mark if assessment.scaling.falls_asleep else None
    until = {} if mark is None else {"readUntil": mark.document()}
    return RecordStatus({"autoscaling": assessment.scaling.record} | until)
