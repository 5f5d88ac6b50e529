"""The next steps in a world, in short, and worlds that are on the way to their first worker."""

from __future__ import annotations

from typing import Any

from ots_tunnel.model import Stage
from ots_tunnel_operator.plan.actions import ApplyObject
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.absence import Failure, Missing
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import NOW, PLACE, description, planned, world

#: What workers are and need, in the order in which it is applied.
WORKER_OBJECTS = [
    "ServiceAccount/flights-copy-workers",
    "ConfigMap/flights-copy-config",
    "Deployment/flights-copy",
    "PodDisruptionBudget/flights-copy-workers",
]
#: A look that got no answer.
BUSY = Failure(Problem(Reason.SERVICE_UNAVAILABLE, "503", ("SinkReady",)))
#: A tunnel in its first stage, without channels.
INIT = Tunnel(description(stage=Stage.INIT, create_time_ns=int((NOW - 10) * 1e9)), {})
#: A status in which the destination is there and no tunnel is.
ENSURED: dict[str, Any] = {
    "destination": PLACE | {"createIntentTime": "t", "createdByOperator": True, "ensuredTime": "t"}
}


def steps(found: World) -> list[str]:
    """The actions of the plan: kind and name of what is applied, or the action's own name."""
    return [
        f"{action.manifest['kind']}/{action.manifest['metadata']['name']}"
        if isinstance(action, ApplyObject)
        else type(action).__name__
        for action in planned(found).actions
    ]


def new_world(of: Resource) -> World:
    """Nothing of the object's is there."""
    return world(of, tunnel=Missing(), destination=Missing(), children={}, pods=())


def replicas(found: World) -> int:
    """The number of workers that the plan applies."""
    manifests = [action.manifest for action in planned(found).actions if isinstance(action, ApplyObject)]
    return int(next(item for item in manifests if item["kind"] == "Deployment")["spec"]["replicas"])
