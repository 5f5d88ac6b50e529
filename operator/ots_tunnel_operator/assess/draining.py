"""What still consumes for a suspended object. Pure."""

from __future__ import annotations

from ots_tunnel_operator.assess.snapshot import Snapshot
from ots_tunnel_operator.assess.snapshot_state import SnapshotState
from ots_tunnel_operator.assess.spark_state import AppState
from ots_tunnel_operator.world.world import World


def draining(world: World, snapshot: Snapshot) -> str:
    """The consumers that have not stopped yet, in words; empty where nothing runs.

    A SparkApplication runs until the Spark operator reports its end or its suspension and each of its pods has ended.
    Where no Spark operator has picked it up, nothing runs that could be suspended.
    """
    found = []
    if any(pod.is_alive for pod in world.pods):
        found.append("workers are draining")
    elif is_deployed(world):
        found.append("the workers' Deployment is not at 0 yet")
    application = snapshot.application
    runs = application is not None and not (application.state.terminal or application.state is AppState.SUSPENDED)
    if (runs and snapshot.state is not SnapshotState.OPERATOR_MISSING) or any(
        pod.is_alive and not pod.terminated for pod in world.spark_pods
    ):
        found.append("the snapshot's SparkApplication is stopping")
    return " and ".join(found)


def is_deployed(world: World) -> bool:
    """Whether the Deployment asks for workers, or its controller has not seen yet that it no longer does."""
    found = world.deployment
    if found is None:
        return False
    status = found.get("status") or {}
    observed = int(status.get("observedGeneration") or 0) >= int(found["metadata"].get("generation") or 0)
    return not observed or bool(found["spec"].get("replicas", 1)) or bool(status.get("replicas"))
