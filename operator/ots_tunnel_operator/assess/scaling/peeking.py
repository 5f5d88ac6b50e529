"""Whose channels are looked at without a client, which of them next, and what the looks say together. Pure."""

from __future__ import annotations

from ots_tunnel.model import ChannelId, Stage
from ots_tunnel_operator.assess.completion import was_completed
from ots_tunnel_operator.assess.lag import consumable, is_initialised
from ots_tunnel_operator.assess.scaling.record import wanted_workers
from ots_tunnel_operator.assess.spark.snapshot import COMPLETED
from ots_tunnel_operator.autoscale.asleep import is_idle_for_long
from ots_tunnel_operator.autoscale.history import History
from ots_tunnel_operator.autoscale.peeked import Peeked
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World

#: Seconds between two looks at a channel of an object without autoscaling, as the default of peekIntervalSeconds.
INTERVAL_SECONDS = 300


def is_peeking(world: World) -> bool:
    """Whether somebody has to look: no worker runs because nothing is to be read, or the last one might go; or none is
    wanted, and how late the object is only a look can tell."""
    if world.resource.deleted is not None or not isinstance(world.tunnel, Tunnel):
        return False
    found = world.tunnel.description
    is_ours = str(found.tunnel.tunnel_id) == world.resource.recorded_tunnel.get("id")
    if not is_ours or not is_initialised(found) or found.tunnel.stage != Stage.STREAM:
        return False
    return is_paused(world) or may_sleep(world)


def is_paused(world: World) -> bool:
    """Whether a person wants no worker, and none is left: consume points stand still, whatever is written."""
    resource, spec = world.resource, world.resource.spec
    if resource.uses_spark and resource.recorded_snapshot.get("state") != COMPLETED:
        return False  # changes are not read before the copy is recorded
    is_wanted = not spec.suspend and spec.replicas
    return not (is_wanted or was_completed(world) or any(pod.is_alive for pod in world.pods))


def may_sleep(world: World) -> bool:
    """Whether no worker runs because nothing is to be read, or the last one might go."""
    resource, spec = world.resource, world.resource.spec
    settings = spec.autoscaling
    if settings is None or spec.scaling_mode != "Auto" or not settings.scale_to_zero.enabled:
        return False
    if spec.suspend or not spec.replicas:
        return False
    workers = wanted_workers(resource)
    policy = settings.policy(spec.worker_settings.heartbeat_interval_seconds, spec.sink.holds_seconds, spec.source.part)
    return not workers or (workers == 1 and is_idle_for_long(policy, world.scaling or History(), world.now))


def due(world: World) -> tuple[ChannelId, ...]:
    """The channels to be looked at now: those never looked at, then those whose look is the oldest."""
    if not isinstance(world.tunnel, Tunnel):
        return ()
    before = world.now - interval_of(world.resource)
    looks = {
        channel.channel_id: peek.time if (peek := world.peeks.get(channel.channel_id)) is not None else 0.0
        for channel in consumable(world.tunnel.description)
    }
    return tuple(sorted((key for key, time in looks.items() if time <= before), key=lambda key: (looks[key], key)))


def peeked(world: World) -> Peeked | None:
    """What the looks at the channels that can be read have found; None without a description."""
    if not isinstance(world.tunnel, Tunnel):
        return None
    looks = [world.peeks.get(channel.channel_id) for channel in consumable(world.tunnel.description)]
    times = [look.time for look in looks if look is not None]
    waiting = [
        channel.channel_id
        for channel, look in zip(consumable(world.tunnel.description), looks, strict=True)
        if look is not None and look.waits
    ]
    is_known = len(times) == len(looks) and bool(times)
    part = world.resource.spec.source.part
    return Peeked(min(times) if is_known else None, min(waiting, default=""), world.peek_failure, part)


def is_read_to_its_end(world: World) -> bool:
    """Whether every channel was looked at within two intervals, and nothing was found to read."""
    looks = peeked(world)
    if looks is None or looks.oldest is None or looks.waits:
        return False
    return world.now - looks.oldest <= 2 * interval_of(world.resource)


def interval_of(resource: Resource) -> float:
    """Seconds between two looks at a channel."""
    settings = resource.spec.autoscaling
    return float(INTERVAL_SECONDS if settings is None else settings.scale_to_zero.peek_interval_seconds)
