"""Who else writes the number of workers while the operator decides it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ots_tunnel_operator.assess.scaling.record import recorded
from ots_tunnel_operator.names import FIELD_MANAGER
from ots_tunnel_operator.world import World

#: What every message advises.
_ADVICE = "the operator decides with autoscaling.mode Auto: use either, with mode Advise beside another autoscaler"


def foreign_writer(world: World, wanted: int) -> str:
    """What another client has just written, and what to do; empty where no other one writes.

    Args:
        wanted: the number of workers so far.
    """
    spec, asked = world.resource.spec, recorded(world.resource).get("specReplicas")
    if asked is not None and asked != spec.replicas:
        return f"spec.replicas was changed from {asked} to {spec.replicas}, which has no effect: {_ADVICE}"
    deployment = world.deployment
    if deployment is None or int(deployment["spec"].get("replicas", 1)) == wanted:
        return ""
    others = sorted(set(_writers(deployment)) - {FIELD_MANAGER})
    if not others:
        return ""
    found = deployment["spec"].get("replicas", 1)
    return f"{', '.join(others)} set the replicas of the workers' Deployment to {found} instead of {wanted}: {_ADVICE}"


def _writers(deployment: Mapping[str, Any]) -> Iterator[str]:
    """The clients that own spec.replicas of a Deployment."""
    for entry in deployment["metadata"].get("managedFields") or ():
        if "f:replicas" in ((entry.get("fieldsV1") or {}).get("f:spec") or {}):
            yield str(entry.get("manager") or "an unknown client")
