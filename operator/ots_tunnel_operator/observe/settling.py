"""Whether workers and channels have come to rest, and for how long. Changes nothing but the loop's cache.

At rest, as many pods exist as the Deployment asks for, none of them is leaving or being replaced, and of the channels
that can be read none is on its way: CLOSING, closed by its last owner, or left to a worker that is gone. A channel that
never had an owner waits for its parents, and does not count. It is calm as long as looks find the same owners as well.

The service is described every 15 s at most, so that a look may show what was: only the time up to the last description
counts as calm. The times are lost with the process; a new one waits for another heartbeat, and does no harm.
"""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel.model import ChannelStatus
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.lag import consumable, is_initialised, orphaned
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import Settling, World

#: A channel in such a state has left one worker and is not with the next one yet.
ON_ITS_WAY = (ChannelStatus.CLOSING, ChannelStatus.CLOSE)


def observe_settling(world: World, cache: LoopCache) -> World:
    """The world with what moves, and since when.

    Args:
        cache: its `tunnel_time` is that of the description in the world.
    """
    moves = _moves(world)
    # a worker may have come or gone since the last look
    pods = frozenset((pod.name, pod.deleting) for pod in world.pods if pod.is_alive)
    if not moves:
        cache.moving = None
        if cache.calm is None or cache.calm[0] != pods:
            cache.calm = pods, world.now
        since = max(cache.calm[1], _same_since(world))
        return replace(world, settling=Settling(calm_seconds=max(0.0, cache.tunnel_time - since)))
    cache.calm = None
    if cache.moving is None or cache.moving[0] != pods:
        cache.moving = pods, world.now
    return replace(world, settling=Settling(moves, stuck_seconds=world.now - cache.moving[1]))


def _same_since(world: World) -> float:
    """Time of the first of the looks in a row that found each channel with the same worker; 0 is unknown."""
    return (world.tunnel.same_since or 0.0) if isinstance(world.tunnel, Tunnel) else 0.0


def _moves(world: World) -> str:
    """What moves, in words without a figure; empty at rest."""
    found, source = world.deployment, world.resource.spec.source
    status, spec = (found or {}).get("status") or {}, (found or {}).get("spec") or {}
    exists = int(status.get("replicas") or 0)
    if any(pod.deleting and pod.is_alive for pod in world.pods):
        return "a worker is draining"
    if found is not None:
        if int(status.get("observedGeneration") or 0) < int(found["metadata"].get("generation") or 0):
            return "the Deployment is being changed"
        if int(status.get("updatedReplicas") or 0) < exists:
            return "workers are being replaced"
        if exists != int(spec.get("replicas", 1)):
            return "pods are being created or removed"
    if not isinstance(world.tunnel, Tunnel):
        return f"the {source.whole} could not be read"
    return f"{source.part}s are moving between workers" if _has_moving_channel(world, world.tunnel) else ""


def _has_moving_channel(world: World, tunnel: Tunnel) -> bool:
    if not is_initialised(tunnel.description):
        return False
    if any(channel.status in ON_ITS_WAY for channel in consumable(tunnel.description)):
        return True
    return bool(orphaned(tunnel.description, world.pods, names.client_tag_prefix(world.resource.uid)))
