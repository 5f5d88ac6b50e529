"""Whether the workers' PodMonitor is there.

It is looked at only where the object asks for one or its status says that it has had one: other objects cost no call,
and without any such object no PodMonitor is watched. What cannot be read is a `Failure` and stops nothing else. So is a
refused apply or deletion, which is tried again after AGAIN_SECONDS: a cluster's rules change without the object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.diagnosis import pod_monitor_held, pod_monitor_problem
from ots_tunnel_operator.kube.cluster import Reader
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import POD_MONITOR
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.manifests.children import is_child
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import World

#: Seconds after which a refused apply or deletion is tried again, and one that a finalizer holds is told.
AGAIN_SECONDS = 300.0


async def observe_pod_monitor(
    kube: Reader, resource: Resource, cache: LoopCache
) -> Mapping[str, Any] | Missing | Failure | Unread:
    """The PodMonitor of an object; Unread where the object neither asks for one nor has had one.

    Args:
        kube: what watches keep of the cluster.
        resource: the object.
        cache: of its loop.
    """
    wanted, name = resource.wants_pod_monitor, names.workers_name(resource.name)
    if not wanted and not resource.status.get("podMonitor"):
        return Unread()
    refusal = cache.monitor_refusal
    if refusal is not None and refusal.wanted == wanted and cache.time - refusal.time < AGAIN_SECONDS:
        return Failure(refusal.problem)
    try:
        found = await kube.get(POD_MONITOR, resource.namespace, name)
    except KubeError as error:
        if error.status == 404 and not wanted:
            # a kind that is not served has no objects that Prometheus could read; should it come back, so does the look
            return Unread()
        return Failure(pod_monitor_problem(error, name, wanted=wanted))
    # one that belongs to another client is not this object's: an apply says so
    if found is None or not is_child(found, POD_MONITOR, resource.name, resource.uid):
        return Missing()
    going = parse_time(found["metadata"].get("deletionTimestamp"))
    if not wanted and going is not None and cache.time - going >= AGAIN_SECONDS:
        return Failure(pod_monitor_held(name, found["metadata"].get("finalizers") or ()))
    return found


def with_refusal(world: World, cache: LoopCache) -> World:
    """The world with what the actions of this pass have found: that the PodMonitor was refused, if it was.

    Otherwise the status would take a refusal back for a moment, whenever it is tried again.

    Args:
        world: as observed before the actions.
        cache: of its loop.
    """
    refusal = cache.monitor_refusal
    is_new = refusal is not None and refusal.time == cache.time
    return replace(world, pod_monitor=Failure(refusal.problem)) if refusal is not None and is_new else world
