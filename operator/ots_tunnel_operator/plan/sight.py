"""What has to be seen before anything is created. Pure.

The steps that create take it as an argument, so that no order of steps can pass it by.
"""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel_operator.plan.actions import Wait
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World


@dataclass(frozen=True, slots=True)
class Sight:
    """Source, destination and tunnel as they were seen in this look; None where the object needs no such thing."""

    source: Table
    destination: Table | Missing | None
    tunnel: Tunnel | Missing | None


def look(world: World) -> Sight | Wait:
    """What was seen, or the wait for what was not; a failure to read it is a problem already."""
    spec, source = world.resource.spec, world.source
    destination = None if spec.sink.tablestore is None else world.destination
    tunnel = None if world.resource.wire_type is None else world.tunnel
    if not isinstance(source, Table):
        return Wait(Reason.CREATING_TUNNEL, "the source could not be read")
    if not isinstance(destination, Table | Missing | None):
        return Wait(Reason.CREATING_DESTINATION, "the destination could not be read")
    if not isinstance(tunnel, Tunnel | Missing | None):
        return Wait(Reason.CREATING_TUNNEL, f"the {spec.source.whole} could not be read")
    return Sight(source, destination, tunnel)
