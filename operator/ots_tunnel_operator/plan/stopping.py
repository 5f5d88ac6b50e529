"""Asking for no worker any more. Pure."""

from __future__ import annotations

from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.plan.actions import ScaleDown
from ots_tunnel_operator.world.world import World


def scale_down(world: World, assessment: Assessment) -> tuple[ScaleDown, ...]:
    """What ends the workers; nothing where none is asked for.

    Watches see the operator's labels only. A Deployment that has lost them to another client is in no copy, and its
    pods go on all the same: the action looks for it at the API server.
    """
    is_unseen = world.deployment is None and any(pod.is_alive for pod in world.pods)
    return (ScaleDown(),) if assessment.deployed_replicas or is_unseen else ()
