"""The step that creates or adopts the tunnel. Pure; `assess.creation` has the theory."""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel.model import StreamConfig, TunnelType
from ots_tunnel_operator.assess.adoption import wanted_stream
from ots_tunnel_operator.assess.creation import (
    REPEAT_SECONDS,
    is_recorded_at,
    is_standing,
    stream_record,
    tunnel_record,
    withdrawal,
)
from ots_tunnel_operator.assess.lag import NANOSECONDS, is_initialised
from ots_tunnel_operator.plan.actions import CreateTunnel, Plan, RecordStatus, Wait
from ots_tunnel_operator.plan.sight import Sight
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World


def tunnel_step(world: World, seen: Sight, settings: Settings) -> Plan | None:
    """Create or adopt the tunnel and wait until it lists its channels; None once it does.

    Args:
        world: what was observed.
        seen: what of it was seen in this look.
        settings: of the process.
    """
    spec = world.resource.spec
    recorded = world.resource.recorded_tunnel
    wire_type = world.resource.wire_type
    if spec.source.stream is not None:
        return _stream_step(world, seen)
    if wire_type is None or seen.tunnel is None:
        return None
    name = spec.source.a_tunnel.name
    if isinstance(seen.tunnel, Missing):
        wait = Wait(Reason.CREATING_TUNNEL, f"tunnel {name!r} is being created")
        create = CreateTunnel(TunnelType[wire_type], _stream_config(world))
        endpoint = spec.source.endpoint
        if is_standing(recorded, world.now, REPEAT_SECONDS) and is_recorded_at(recorded, endpoint):
            return Plan((create,), wait, again=True)
        intent = {"createIntentTime": timestamp(world.now), "endpoint": endpoint}
        create = replace(create, withdrawal={"tunnel": withdrawal(recorded, intent, world.now)})
        return Plan((RecordStatus({"tunnel": intent}), create), wait, again=True)
    description = seen.tunnel.description
    if not recorded.get("id"):
        wait = Wait(Reason.CREATING_TUNNEL, f"tunnel {name!r} is being adopted")
        change = {"tunnel": tunnel_record(description.tunnel, recorded, spec.source.endpoint)}
        return Plan((RecordStatus(change),), wait, again=True)
    if is_initialised(description):
        return None
    wait = Wait(Reason.TUNNEL_INITIALISING, f"tunnel {name!r} is in stage {description.tunnel.stage}")
    age = world.now - description.tunnel.create_time_ns / NANOSECONDS
    problem = None
    if age > settings.initialising_seconds:
        problem = Problem(
            Reason.TUNNEL_INITIALISING,
            f"spec.source.tunnel.name {name!r}: no channel after {settings.initialising_seconds:.0f} s: ask the vendor "
            f"why the tunnel stays in stage {description.tunnel.stage}, or delete tunnel and object and apply again",
            ("TunnelReady",),
        )
    return Plan(wait=wait, problem=problem)


def _stream_step(world: World, seen: Sight) -> Plan | None:
    """Record the stream that is read without a tunnel; None once it is recorded. Nothing is created for it."""
    recorded, source = world.resource.recorded_tunnel, world.resource.spec.source
    if not isinstance(seen.tunnel, Tunnel) or recorded.get("id"):
        return None
    stream = str(seen.tunnel.description.tunnel.tunnel_id)
    wait = Wait(Reason.CREATING_TUNNEL, f"stream {stream} of table {source.table!r} is read for the first time")
    return Plan((RecordStatus({"tunnel": stream_record(stream, source)}),), wait, again=True)


def _stream_config(world: World) -> StreamConfig | None:
    """Start and end of the new tunnel; an end in the future is left to the workers (docs/architecture.md 3.4)."""
    if world.resource.wire_type != "Stream":
        return None
    wanted = wanted_stream(world.resource.stream)
    return wanted if wanted.end_offset_ns / NANOSECONDS < world.now else replace(wanted, end_offset_ns=0)
