"""What is known of the workers: the conditions WorkersAvailable and Rebalancing. Pure."""

from __future__ import annotations

from ots_tunnel_operator import names
from ots_tunnel_operator.assess.lag import count_channels, is_initialised, orphaned
from ots_tunnel_operator.plan.actions import Plan
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.report.conditions import ConditionValue
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World


def available(world: World, plan: Plan) -> ConditionValue:
    """The condition WorkersAvailable: whether as many pods are ready as wanted."""
    ready = sum(pod.ready for pod in world.pods if not pod.deleting)
    if not plan.replicas:
        reason = Reason.NO_WORKERS_WANTED
        return ConditionValue(True, reason, "no worker is wanted now")
    if ready >= plan.replicas:
        return ConditionValue(True, Reason.MINIMUM_REPLICAS_AVAILABLE, f"{plan.replicas} workers are ready")
    return ConditionValue(
        False, Reason.WORKERS_UNAVAILABLE, f"{ready} of {plan.replicas} workers are ready{_why(world.pods)}"
    )


def rebalancing(world: World, plan: Plan) -> ConditionValue:
    """The condition Rebalancing: whether channels are on their way to a worker."""
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        return ConditionValue(None, Reason.UNKNOWN)
    counts = count_channels(world.tunnel.description)
    moving = counts.closing or counts.unowned or has_orphans(world, world.tunnel)
    number, part = takers(world), world.resource.spec.source.part
    if not plan.replicas or not moving:
        return ConditionValue(False, Reason.SETTLED, f"no {part} is moving between workers")
    if not number:
        return ConditionValue(False, Reason.CHANNELS_UNOWNED, f"{part}s wait for a worker, and none is ready")
    if number > 1:
        return ConditionValue(True, Reason.CHANNELS_MOVING, f"{part}s are moving to another worker")
    return ConditionValue(True, Reason.CHANNELS_MOVING, f"{part}s are being given to the only worker that is ready")


def has_orphans(world: World, tunnel: Tunnel) -> bool:
    """Whether a channel still belongs to a worker that is gone."""
    return bool(orphaned(tunnel.description, world.pods, names.client_tag_prefix(world.resource.uid)))


def takers(world: World) -> int:
    """Number of workers that can take a channel."""
    return sum(pod.ready and not pod.deleting for pod in world.pods)


def _why(pods: tuple[Pod, ...]) -> str:
    waiting = sorted(f"{pod.name}: {pod.message}" for pod in pods if not pod.ready and pod.message)
    return f"; {waiting[0]}" if waiting else ""
