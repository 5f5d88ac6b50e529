"""What still consumes for a suspended object. Pure."""

from __future__ import annotations

from ots_tunnel_operator.assess.snapshot import Snapshot
from ots_tunnel_operator.assess.spark_state import AppState
from ots_tunnel_operator.world import World


def draining(world: World, snapshot: Snapshot) -> str:
    """The consumers that have not stopped yet, in words; empty where nothing runs.

    A SparkApplication runs until the Spark operator reports its end or its suspension and each of its pods has ended.
    """
    found = []
    if any(pod.is_alive for pod in world.pods):
        found.append("workers are draining")
    application = snapshot.application
    runs = application is not None and not (application.state.terminal or application.state is AppState.SUSPENDED)
    if runs or any(pod.is_alive and not pod.terminated for pod in world.spark_pods):
        found.append("the snapshot's SparkApplication is stopping")
    return " and ".join(found)
