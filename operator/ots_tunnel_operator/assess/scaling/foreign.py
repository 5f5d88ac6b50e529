"""Who else writes the number of workers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ots_tunnel_operator.assess.scaling.record import recorded
from ots_tunnel_operator.names import FIELD_MANAGER
from ots_tunnel_operator.world.world import World

#: What every message advises.
_ADVICE = "the operator decides with autoscaling.mode Auto: use either, with mode Advise beside another autoscaler"


def foreign_writer(world: World, wanted: int) -> str:
    """What another client has just written while Auto decides, and what to do; empty where no other one writes.

    Args:
        wanted: the number of workers so far.
    """
    spec, asked = world.resource.spec, recorded(world.resource).get("specReplicas")
    if asked is not None and asked != spec.replicas:
        return f"spec.replicas was changed from {asked} to {spec.replicas}, which has no effect: {_ADVICE}"
    found, others = world.deployment, _others(world, wanted)
    if found is None or not others:
        return ""
    number = found["spec"].get("replicas", 1)
    return f"{others} set the replicas of the workers' Deployment to {number} instead of {wanted}: {_ADVICE}"


def rival_of_object(world: World, wanted: int) -> str:
    """Who writes the replicas of the Deployment while the object has the number, and what to do; empty without one.

    The message has nothing of what it wrote: it would be another event each time.

    Args:
        wanted: the number of workers by the object.
    """
    others = _others(world, wanted) if wanted and world.resource.spec.scaling_mode != "Auto" else ""
    return others and (
        f"{others} sets the replicas of the workers' Deployment, and the operator sets them back to {wanted}, the "
        f"number of the object: let an autoscaler scale TablestoreTunnel {world.resource.name!r}, and not its "
        f"Deployment"
    )


def _others(world: World, wanted: int) -> str:
    """The clients that have set the Deployment to another number than wanted; empty without any."""
    found = world.deployment
    if found is None or int(found["spec"].get("replicas", 1)) == wanted:
        return ""
    writers = set(_writers(found))
    # a change by another client ends our part of the field; where we have one, the others have set our number once
    return "" if FIELD_MANAGER in writers else ", ".join(sorted(writers))


def _writers(deployment: Mapping[str, Any]) -> Iterator[str]:
    """The clients that own spec.replicas of a Deployment."""
    for entry in deployment["metadata"].get("managedFields") or ():
        if "f:replicas" in ((entry.get("fieldsV1") or {}).get("f:spec") or {}):
            yield str(entry.get("manager") or "an unknown client")
