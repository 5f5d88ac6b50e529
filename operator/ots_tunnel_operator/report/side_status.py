"""What the status says of the two sides: the tunnel, also one that is gone, and the destination. Pure."""

from __future__ import annotations

from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.creation import creation_text, stream_record, tunnel_record
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.report import Status
from ots_tunnel_operator.world.absence import Failure, Missing
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World

#: What is kept of a tunnel that is gone.
_LAST_KNOWN = ("lastStage", "consumedUpTo")


def tunnel_status(world: World) -> Status | None:
    """The record of the tunnel with what the service says of it."""
    recorded = dict(world.resource.recorded_tunnel)
    if isinstance(world.tunnel, Tunnel) and recorded.get("id") == world.tunnel.description.tunnel.tunnel_id:
        source, info = world.resource.spec.source, world.tunnel.description.tunnel
        is_tunnel = source.stream is None
        recorded |= (
            tunnel_record(info, recorded, source.endpoint) if is_tunnel else stream_record(recorded["id"], source)
        )
        recorded = {key: value for key, value in recorded.items() if key not in _LAST_KNOWN}
    elif isinstance(world.tunnel, Tunnel | Missing) or isinstance(world.source, Missing):
        # the recorded tunnel is gone: it has no stage any more
        stage = recorded.pop("stage", None)
        recorded |= _last_known(world, stage)
    elif isinstance(world.tunnel, Failure) and world.tunnel.problem.reason is Reason.TUNNEL_EXPIRED:
        recorded |= _last_known(world, recorded.get("stage"))
    if isinstance(world.source, Table) and world.source.stream_retention_seconds and recorded:
        recorded["streamRetentionSeconds"] = world.source.stream_retention_seconds
    # an empty one is what a definition that lacks the fields keeps of a record
    return recorded if recorded or "tunnel" in world.resource.status else None


def _last_known(world: World, stage: str | None) -> Status:
    """What a reset has to know of a tunnel that is gone: how far it came, by the last look at it."""
    until = (world.resource.status.get("lag") or {}).get("consumedUpTo")
    known = dict(zip(_LAST_KNOWN, (stage, until), strict=True))
    recorded = world.resource.recorded_tunnel
    return {key: value for key, value in known.items() if value and recorded.get("id") and key not in recorded}


def destination_status(world: World, assessment: Assessment) -> Status | None:
    """The record of the destination; one of an earlier release learns when its table was created.

    While the table counts as lost it does not: what is there may be another one.
    """
    recorded: Status | None = world.resource.status.get("destination")
    created = creation_text(world.destination)
    is_certain = world.resource.is_destination_recorded and assessment.verdict is None
    if not recorded or created is None or not is_certain or world.resource.destination_created is not None:
        return recorded
    return recorded | {"createdTime": created}
