"""What status.tunnel records of a tunnel that exists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel.model import TunnelInfo
from ots_tunnel_operator.assess.lag import NANOSECONDS
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world import Tunnel, World


def tunnel_record(info: TunnelInfo, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of status.tunnel.

    A tunnel counts as created by this operator only if the intent to create it was recorded before, which happens
    only while no tunnel of that name exists.

    Args:
        info: the tunnel as the service describes it.
        recorded: status.tunnel as stored.
    """
    intended = bool(recorded.get("createIntentTime"))
    return {
        "id": str(info.tunnel_id),
        "type": info.tunnel_type.name,
        "stage": info.stage,
        "createdByOperator": recorded.get("createdByOperator", intended),
        "createdTime": timestamp(info.create_time_ns / NANOSECONDS),
        "expired": info.expired,
    }


def is_replaced(world: World) -> bool:
    """Whether the tunnel that was seen only has the name of the recorded one."""
    recorded, found = world.resource.recorded_tunnel.get("id"), world.tunnel
    return bool(recorded) and isinstance(found, Tunnel) and found.description.tunnel.tunnel_id != recorded
