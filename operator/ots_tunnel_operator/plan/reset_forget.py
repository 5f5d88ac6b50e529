"""What a reset forgets of the former tunnel, and where the next one begins: one change of the status. Pure."""

from __future__ import annotations

from typing import Any

from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.reset.forms import FORMS, Loss, Start
from ots_tunnel_operator.reset.record import lost_document
from ots_tunnel_operator.reset.request import Existing, Form, Request
from ots_tunnel_operator.world.resource import Resource

#: Parts of the status that are about the tunnel that is forgotten.
OF_FORMER = ("verdict", "possibleGaps", "readUntil", "channels", "base", "lag", "throughput")
#: Fields of status.tunnel: nothing of a tunnel that is forgotten holds for the next one.
_OF_TUNNEL = (
    *("id", "endpoint", "type", "stage", "createIntentTime", "createdByOperator", "createdTime", "expired"),
    *("streamRetentionSeconds", "startFrom", "startTime", "consumedUpTo", "lastStage"),
)


def forgotten(request: Request, loss: Loss | None, resource: Resource, assessment: Assessment) -> dict[str, Any]:
    """The change of the status that forgets the former tunnel and all that was known of it.

    Args:
        request: what the next tunnel is for.
        loss: what is given up with the former one.
        resource: the object.
        assessment: of the look that decides.
    """
    start = _start(request, resource)
    tunnel: dict[str, Any] | None = None
    if start is not None:
        tunnel = dict.fromkeys(_OF_TUNNEL) | {"startFrom": start.start_from, "startTime": start.start_time}
    change: dict[str, Any] = {**dict.fromkeys(OF_FORMER), "tunnel": tunnel, "lost": lost_document(loss)}
    if request.form is Form.NEW_BASE:
        change["snapshot"] = None
        if assessment.problem is not None and assessment.problem.reason is Reason.DESTINATION_CHANGED:
            change["destination"] = None
    return change


def _start(request: Request, resource: Resource) -> Start | None:
    """Where the next tunnel begins; None where it is as the spec has it."""
    start = FORMS[request.form].start(request)
    if request.existing is not Existing.ADOPT:
        return _unlike_spec(start, resource)
    if resource.is_without_base:
        # the tunnel to adopt was compared with this start
        recorded = resource.recorded_tunnel
        return Start(str(recorded["startFrom"]), recorded.get("startTime"))
    # Spark has copied existing rows before, and would copy them again for a tunnel as the spec has it
    return start if resource.spec.uses_spark else None


def _unlike_spec(start: Start | None, resource: Resource) -> Start | None:
    """The start where the spec has another one: a tunnel like the spec's needs no record of its start."""
    tunnel = resource.spec.source.a_tunnel
    if start is None or tunnel.type != "Stream":
        return start
    wanted = tunnel.stream
    is_same = start.start_time is None and start.start_from == (wanted.start_from if wanted else "Latest")
    return None if is_same else start
