"""What status.autoscaling records, and the number of workers that follows from it. Pure.

Theory of operation
-------------------
What a restart must not lose is in the status, everything else in the memory of the process (`autoscale.history`):

    desiredReplicas                 the wanted number, which holds until the next decision
    specReplicas                    spec.replicas while mode was Auto; only Auto writes it
    lastScaleTime, lastDecision     when the number was changed last, and why
    sleep                           since when no worker runs because nothing is to be read, and for which generation

The wanted number, first match first:

    a query of Spark follows the changes            0
    spec.replicas is 0                              0, whatever the mode: that is how to stop every worker
    desiredReplicas is 0, and not Auto              spec.replicas: only Auto looks for what ends the sleep
    Auto, and specReplicas is recorded              desiredReplicas
    Disabled or Advise, specReplicas is recorded    desiredReplicas: after Auto the number stays until spec.replicas is
    and still is spec.replicas                      edited
    otherwise                                       spec.replicas

A decision is recorded before it is carried out. An operator that dies in between carries it out after its restart, from
the status; the other way round it would take the new number back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator.autoscale.decision import Cause, Change
from ots_tunnel_operator.autoscale.history import History, Shown
from ots_tunnel_operator.autoscale.limit import Limit
from ots_tunnel_operator.autoscale.record import Record
from ots_tunnel_operator.times import parse_time, timestamp
from ots_tunnel_operator.world.resource import Resource

#: Longest message that is recorded, characters.
MAX_MESSAGE = 1024


def recorded(resource: Resource) -> Mapping[str, Any]:
    """status.autoscaling."""
    return resource.status.get("autoscaling") or {}


def wanted_workers(resource: Resource) -> int:
    """The number of workers that is wanted before anything is decided now; see the module's description."""
    spec, found = resource.spec, recorded(resource)
    known, asked = found.get("desiredReplicas"), found.get("specReplicas")
    if spec.uses_query:
        return 0
    if known is None or asked is None or not spec.replicas:
        return spec.replicas
    if not known and spec.scaling_mode != "Auto":
        return spec.replicas
    return int(known) if spec.scaling_mode == "Auto" or asked == spec.replicas else spec.replicas


def record_of(resource: Resource) -> Record:
    """The record as the decision takes it."""
    found = recorded(resource)
    decision = found.get("lastDecision") or {}
    # an edit may have removed the cause
    is_present = decision.get("generation") in (None, resource.generation)
    is_useless = decision.get("reason") == Cause.INEFFECTIVE and is_present
    return Record(
        desired=wanted_workers(resource),
        scaled=parse_time(found.get("lastScaleTime")),
        ineffective=parse_time(decision.get("time")) if is_useless else None,
        slept=_slept(resource),
        generation=resource.generation,
    )


def _slept(resource: Resource) -> float | None:
    """Since when no worker runs because nothing is to be read; None where the spec has changed since."""
    found = recorded(resource).get("sleep") or {}
    return parse_time(found.get("since")) if found.get("generation") == resource.generation else None


def begun(resource: Resource) -> History:
    """What is remembered at the first look of a process: what the status shows stands until there is more."""
    found = recorded(resource)
    recommended, limit = found.get("recommendedReplicas"), found.get("limitedBy")
    shown = Shown(recommended, Limit(limit) if limit in set(Limit) else Limit.NONE)
    return History(
        shown=shown,
        blocked_channels=found.get("usefulMaxReplicas"),
        generation=resource.status.get("observedGeneration"),
    )


def change_document(change: Change, resource: Resource, now: float) -> dict[str, Any]:
    """The record of a decision; a field that is None is taken out of the status.

    Args:
        change: what was decided.
        resource: the object.
        now: seconds since 1970.
    """
    decision = {
        "time": timestamp(now),
        "from": change.before,
        "to": change.after,
        "reason": str(change.cause),
        "message": change.message[:MAX_MESSAGE],
        "generation": resource.generation,
    }
    return {
        "desiredReplicas": change.after,
        "specReplicas": resource.spec.replicas,
        "lastScaleTime": timestamp(now),
        "lastDecision": decision,
        **_sleep_document(change, resource, now),
    }


def _sleep_document(change: Change, resource: Resource, now: float) -> dict[str, Any]:
    if not change.after:
        return {"sleep": {"since": timestamp(now), "generation": resource.generation}}
    return {"sleep": None} if "sleep" in recorded(resource) else {}
