"""What the status records of a tunnel or a table that this object meant to create. Pure.

Theory of operation
-------------------
Nothing that exists tells who created it. So the intent is stored before each creating call, only while nothing of the
name exists, and together with the place. What appears there afterwards counts as this object's own. Such an intent
must not outlive its call:

    the call is answered                         the record of what exists follows the intent
    the call proves to have created nothing      the intent is taken back; an earlier call's stands again
    nobody knows (no answer, 5xx, a crash)       the intent stands, and the next call repeats it

A call that nobody knows about may take effect until STANDING_SECONDS after its intent: so long a refusal of a later
call proves nothing about it, and so long a deletion looks for what it may create.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ots_tunnel.endpoint import region_of
from ots_tunnel.model import TunnelInfo
from ots_tunnel.protocol.http.rpc import MOST_APART
from ots_tunnel_operator.api.source import Source
from ots_tunnel_operator.assess.lag import NANOSECONDS
from ots_tunnel_operator.times import exact_timestamp, parse_time, timestamp
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World

#: Longest time of a creating call, seconds; a new table answers after up to a minute (docs/data-plane.md 2.4).
CREATE_SECONDS = 150.0
#: Seconds for which an intent serves repeated calls, so that an outage causes one write a minute.
REPEAT_SECONDS = 60.0
#: Seconds after an intent in which its last call may still take effect; 30 of them are for the service itself.
STANDING_SECONDS = REPEAT_SECONDS + CREATE_SECONDS + 30.0


def tunnel_record(info: TunnelInfo, recorded: Mapping[str, Any], endpoint: str) -> dict[str, Any]:
    """The fields of status.tunnel for a tunnel that exists.

    A tunnel counts as created by this operator only if the intent to create it was recorded before, which happens
    only while no tunnel of that name exists, and if it was created while the intent stood.

    Args:
        info: the tunnel as the service describes it.
        recorded: status.tunnel as stored.
        endpoint: where it was seen.
    """
    created = info.create_time_ns / NANOSECONDS
    intended = is_recorded_at(recorded, endpoint) and is_standing(recorded, created, STANDING_SECONDS + MOST_APART)
    return {
        "id": str(info.tunnel_id),
        "endpoint": endpoint,
        "type": info.tunnel_type.name,
        "stage": info.stage,
        "createdByOperator": recorded.get("createdByOperator", intended),
        "createdTime": timestamp(created),
        "expired": info.expired,
    }


def stream_record(stream_id: str, source: Source) -> dict[str, Any]:
    """The fields of status.tunnel for a stream that is read without one; it has no stage, and nothing created it."""
    return {
        "id": stream_id,
        "endpoint": source.endpoint,
        "type": "Stream",
        "leaseTable": source.read_through,
        "createdByOperator": False,
    }


def is_created(recorded: Mapping[str, Any], found: Table, now: float) -> bool:
    """Whether a table that exists at the recorded place is that of the recorded intent, as far as times tell.

    Args:
        recorded: status.destination as stored.
        found: the table.
        now: Unix seconds; in place of its creation where the service does not tell that.
    """
    if found.created is None:
        return is_standing(recorded, now)
    return is_standing(recorded, found.created, STANDING_SECONDS + MOST_APART)


def is_recorded_at(recorded: Mapping[str, Any], endpoint: str) -> bool:
    """Whether status.tunnel is about the instance that an endpoint leads to.

    The public, the VPC and the internal host of an instance are one place. A record without an endpoint is one of an
    earlier release, which knew no other place.
    """
    found = recorded.get("endpoint")
    return not found or region_of(str(found)) == region_of(endpoint)


def is_standing(recorded: Mapping[str, Any], now: float, seconds: float = STANDING_SECONDS) -> bool:
    """Whether a record has an intent that is not older than this."""
    intended = parse_time(recorded.get("createIntentTime"))
    return intended is not None and now - intended < seconds


def withdrawal(recorded: Mapping[str, Any], intent: Mapping[str, Any], now: float) -> dict[str, Any]:
    """The change that takes an intent back; what was recorded before is restored only where it still stands.

    Args:
        recorded: the record as stored before the intent.
        intent: the fields that were stored with the intent.
        now: Unix seconds.
    """
    # a table that was found once is gone: its intent has had its effect
    before = recorded if is_standing(recorded, now) and not recorded.get("ensuredTime") else {}
    return {key: before.get(key) for key in intent}


def is_replaced(world: World) -> bool:
    """Whether the tunnel that was seen only has the name of the recorded one."""
    recorded, found = world.resource.recorded_tunnel.get("id"), world.tunnel
    return bool(recorded) and isinstance(found, Tunnel) and found.description.tunnel.tunnel_id != recorded


def is_recreated(world: World) -> bool:
    """Whether the destination that was seen only has the name of the recorded one: that was dropped."""
    recorded, found = world.resource.destination_created, creation_text(world.destination)
    return recorded is not None and found is not None and found != recorded


def creation_text(destination: object) -> str | None:
    """When the service created a table, as status.destination has it; None where there is none, or it is unknown."""
    if not isinstance(destination, Table) or destination.created is None:
        return None
    return exact_timestamp(destination.created)


def of_recorded(world: World) -> World:
    """The world in which the recorded tunnel is missing, where another one has its name: no figure is of that one."""
    return replace(world, tunnel=Missing()) if is_replaced(world) else world
