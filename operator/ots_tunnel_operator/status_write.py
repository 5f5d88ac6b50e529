"""The one way to write a status: against the version of the object that the decision came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator.kube.client import KubeError
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.kinds import TUNNEL
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.world import Named


class StatusOutdated(Exception):
    """Somebody else has changed the object since it was read: the decision has to be made again."""


async def write_status(kube: Cluster, resource: Named, change: Mapping[str, Any], cache: LoopCache) -> None:
    """Merge a change into the stored status; the next write of this loop relies on the version of the answer.

    Raises:
        StatusOutdated: the object has changed since this loop read or wrote it.
        KubeError: the API server refuses the write.
    """
    patch: dict[str, Any] = {"status": dict(change)}
    if cache.version:
        patch["metadata"] = {"resourceVersion": cache.version}
    try:
        answer = await kube.patch(TUNNEL, resource.namespace, resource.name, patch, "status")
    except KubeError as error:
        if error.status == 409:
            raise StatusOutdated(str(error)) from error
        raise
    cache.version = str(((answer or {}).get("metadata") or {}).get("resourceVersion") or "")
