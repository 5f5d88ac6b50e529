"""The workers of a place of files that nothing was written to end before another place is used. Pure.

A rollout keeps a worker that is not ready yet until a new one is. It may become ready in the meantime, write to the
former place and store a checkpoint: the new place would lack what lies before it. So the workers go first, and whether
the tunnel has moved is looked at once more when the last one has ended (`assess.worker_pods.place`).
"""

from __future__ import annotations

from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.draining import client_without_pod, gone, is_deployed
from ots_tunnel_operator.assess.worker_pods.place import former_place
from ots_tunnel_operator.plan.actions import Plan, Wait
from ots_tunnel_operator.plan.stopping import scale_down
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.world.world import World


def empty_former_place(world: World, assessment: Assessment) -> Plan | None:
    """End the workers of the former place; None where there is none, or no worker of it is left.

    Args:
        world: what was observed; a place that may have been written to is a problem already.
        assessment: of this world.
    """
    before = former_place(world)
    # nobody removes an evicted pod
    alive = sum(pod.is_alive for pod in world.pods)
    client = client_without_pod(world)
    if not before or not (alive or is_deployed(world) or client):
        return None
    left = f"the place of spec.sink.files.url changes when the workers of {before!r} have ended: {alive} pods are left"
    left += f", and client {client!r}: {gone(world)}" if client else ""
    return Plan(scale_down(world, assessment), Wait(Reason.STARTING_WORKERS, left))
