"""What still consumes for an object that is suspended, or wants no worker. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ots_tunnel.model import ChannelStatus
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.lag import orphaned
from ots_tunnel_operator.assess.spark.application_state import Application
from ots_tunnel_operator.assess.spark.query import Query
from ots_tunnel_operator.assess.spark.query_state import QueryState
from ots_tunnel_operator.assess.spark.snapshot import Snapshot
from ots_tunnel_operator.assess.spark.snapshot_state import SnapshotState
from ots_tunnel_operator.world.pod import SparkPod
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World

#: States of a channel that a client has.
HOLDING = (ChannelStatus.OPEN, ChannelStatus.CLOSING)
#: The node of a client without a pod, for messages.
_NODE = "its node may be lost, and its process run on"


def draining(world: World, snapshot: Snapshot, query: Query) -> str:
    """The consumers that have not stopped yet, in words; empty where nothing runs.

    A SparkApplication runs until the Spark operator reports its end or its suspension and each of its pods has ended.
    Where no Spark operator has picked it up, nothing runs that could be suspended.
    """
    found = []
    if any(pod.is_alive for pod in world.pods):
        found.append("workers are draining")
    elif is_deployed(world):
        found.append("the workers' Deployment is not at 0 yet")
    elif _runs(query.application, world.query_pods, is_seen=query.state is not QueryState.OPERATOR_MISSING):
        found.append(_stopping("query", query.application, world.query_pods))
    elif client := client_without_pod(world):
        part = world.resource.spec.source.part
        found.append(f"client {client!r} holds {part}s although its pod is gone: {gone(world)}")
    if _runs(snapshot.application, world.spark_pods, is_seen=snapshot.state is not SnapshotState.OPERATOR_MISSING):
        found.append(_stopping("snapshot", snapshot.application, world.spark_pods))
    return " and ".join(found)


def gone(world: World) -> str:
    """What to know about a client without a pod, for messages."""
    spec = world.resource.spec
    if spec.source.stream is not None:
        return f"{_NODE}; its leases count as expired once they stood still for workers.heartbeatTimeoutSeconds"
    silent = "30 s" if spec.uses_query else "workers.heartbeatTimeoutSeconds"
    return f"{_NODE}; the service frees the channels once the client has been silent for {silent}"


def _runs(application: Application | None, pods: Iterable[SparkPod], *, is_seen: bool) -> bool:
    """Whether something of an application may run; nothing of one that no Spark operator has seen."""
    runs = application is not None and not (application.state.terminal or application.is_suspended)
    return (runs and is_seen) or any(pod.is_alive and not pod.terminated for pod in pods)


def _stopping(what: str, application: Application | None, pods: Iterable[SparkPod]) -> str:
    found = f"the {what}'s SparkApplication is stopping"
    if application is None or not application.suspend or any(pod.is_alive for pod in pods):
        return found
    state = application.state or "new"
    return f"{found}: it is {state} and has no pod, so that the Spark operator has to say that it ended"


def client_without_pod(world: World) -> str:
    """A client of the object that holds a channel although no pod is left; empty without one.

    A pod that is deleted by force, or with its node, is gone from the API server, and its process may run on. The
    service knows better: it frees the channels of a client that is silent for the heartbeat timeout. Where the tunnel
    could not be read nothing is known.
    """
    if any(pod.is_alive for pod in world.pods) or not isinstance(world.tunnel, Tunnel):
        return ""
    if world.tunnel.description.tunnel.tunnel_id != world.resource.recorded_tunnel.get("id"):
        # a tunnel that only has the name is read by no worker of this object
        return ""
    held = orphaned(world.tunnel.description, (), names.client_tag_prefix(world.resource.uid))
    return min((str(channel.client_id) for channel in held if channel.status in HOLDING), default="")


def is_deployed(world: World) -> bool:
    """Whether the Deployment asks for workers, or its controller has not seen yet that it no longer does."""
    found = world.deployment
    if found is None:
        return False
    status = found.get("status") or {}
    observed = int(status.get("observedGeneration") or 0) >= int(found["metadata"].get("generation") or 0)
    return not observed or bool(found["spec"].get("replicas", 1)) or bool(status.get("replicas"))
