"""The part of a plan that carries out a reset. Pure; what each form needs, does and loses is in `reset.forms`.

Theory of operation
-------------------
A reset is asked for by an annotation with a token, and acted on by its record in status.reset. The first case applies:

    1. a reset is under way            go on with it, whatever the annotation says, unless it
                                       asks for another one, which may begin
    2. no annotation, or a token that  none
       was carried out or refused
    3. spec.suspend is false, or a     refused, and the token is remembered: an annotation that is forgotten must not
       need is not met                 come true when somebody suspends the object weeks later
    4. consumers are still draining,   wait; nothing is recorded
       or something cannot be seen
    5. otherwise                       record the whole request as Running

Under way, each look finds by the records how far it is (`plan.reset_steps`). So the operator may be killed between any
two of its steps. The spec stays as it is.
"""

from __future__ import annotations

from typing import Any

from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.draining import draining
from ots_tunnel_operator.plan.actions import Action, Plan, RecordStatus, Wait
from ots_tunnel_operator.plan.reset_facts import reset_facts
from ots_tunnel_operator.plan.reset_forget import forgotten
from ots_tunnel_operator.plan.reset_steps import go_on, waiting
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.reset.facts import Facts
from ots_tunnel_operator.reset.forms import Course, Refusal, decide
from ots_tunnel_operator.reset.record import asked, begun, refused, running
from ots_tunnel_operator.reset.request import Request, Unreadable
from ots_tunnel_operator.reset.way_out import pause_command
from ots_tunnel_operator.reset.words import words_of
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.world.world import Competitor, World


def plan_reset(world: World, assessment: Assessment, settings: Settings) -> Plan | None:
    """The next step of a reset that is under way, or may begin; None without one.

    Args:
        world: what was observed.
        assessment: of this world.
        settings: of the process.
    """
    under_way = running(world.resource.status)
    answer = _answer(world, assessment)
    if isinstance(answer, tuple):
        course, facts = answer
        record = begun(course.request, facts, str(words_of(course, facts)), world.resource.status)
        change: dict[str, Any] = {"reset": record}
        if facts.needs_tunnel and not world.resource.recorded_tunnel.get("id"):
            # it takes over one that has forgotten the tunnel: what that one has recorded of the next is not for this
            change |= forgotten(course.request, course.loss, world.resource, assessment)
        return Plan((RecordStatus(change),), waiting(course.request), again=True)
    if under_way is not None:
        return go_on(world, assessment, settings, under_way)
    if isinstance(answer, Wait):
        return Plan(wait=answer, problem=assessment.problem, completed=assessment.was_completed)
    return None


def refuse_reset(world: World, assessment: Assessment) -> tuple[Action, ...]:
    """The record of a refusal, where a reset is asked for that is not carried out."""
    request, answer = _asked(world), _answer(world, assessment)
    if request is None or not isinstance(answer, Refusal):
        return ()
    message = f"nothing was reset: {answer.message}"
    return (RecordStatus({"reset": refused(request, message, world.resource.status, world.now)}),)


def _asked(world: World) -> Request | Unreadable | None:
    return asked(world.resource.object.metadata.annotations, world.resource.status)


def _answer(world: World, assessment: Assessment) -> tuple[Course, Facts] | Refusal | Wait | None:
    """What becomes of the annotation: it may begin, is refused, has to wait, or changes nothing now."""
    request, resource = _asked(world), world.resource
    if request is None:
        return None
    if isinstance(request, Unreadable):
        return Refusal(f"annotation ots-tunnel.dev/reset: {request.message}")
    if resource.spec.source.stream is not None:
        return Refusal(
            f"spec.source: found stream, needed is tunnel: every form of a reset makes another tunnel; "
            f"{resource.start_over()}"
        )
    if resource.spec.uses_query:
        return Refusal(
            f"spec.engine.stream: found Spark, needed is Workers: every form of a reset makes another tunnel, and "
            f"beside the files of the former one a query writes nothing; {resource.start_over()}"
        )
    if not resource.spec.suspend:
        pause = pause_command(resource.namespace, resource.name)
        return Refusal(f"the object is not suspended: `{pause}`, then ask again with another token")
    if draining(world, assessment.snapshot, assessment.query):
        # what stops the consumers goes on
        return None
    if (elder := world.elder or world.later_elder) is not None:
        return _behind(elder)
    facts = reset_facts(world, assessment)
    if isinstance(facts, str):
        return Wait(Reason.RESETTING, f"the reset waits: {facts}")
    found = decide(request, facts)
    return found if isinstance(found, Refusal) else (found, facts)


def _behind(elder: Competitor) -> Refusal:
    """Why an object is not reset that waits for an elder one, or would once it goes on."""
    name = f"the elder object {elder.namespace}/{elder.name}"
    if not elder.way_back:
        return Refusal(f"{name} consumes the tunnel: delete that one, or reset it")
    way = ", ".join(elder.way_back)
    return Refusal(
        f"this one would wait (CopyCircle) once it goes on, because elder objects, {way}, copy its changes back to the "
        f"source: suspend or delete one of them, then ask again with another token"
    )
