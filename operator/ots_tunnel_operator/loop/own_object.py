"""The object of a loop, whatever else has, or had, its name: read it, hold it by the finalizer, parse its spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.cluster import Cluster, Reader
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL, Manifest
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.status_write import StatusOutdated
from ots_tunnel_operator.world.resource import Resource


class OwnObject:
    """Reads and holds the objects of all loops; what is known of one is in its cache.

    Args:
        kube: the API server.
        reader: what watches keep of the cluster.
    """

    def __init__(self, kube: Cluster, reader: Reader) -> None:
        self._kube = kube
        self._reader = reader

    async def read(self, namespace: str, name: str, cache: LoopCache) -> Manifest | None:
        """The object; None where it does not exist, or another one has its name.

        It is read from the API server where the copy does not have it or was refused as outdated.

        Raises:
            KubeError: the API server refuses the read, or does not serve the kind.
        """
        body = None if cache.outdated else await self._reader.get(TUNNEL, namespace, name)
        if body is None or not cache.is_of(body):
            body = await self._kube.get(TUNNEL, namespace, name)
        cache.outdated = False
        if body is None or not cache.is_of(body):
            return None
        cache.body, cache.absent_since = body, None
        cache.version = str(body["metadata"].get("resourceVersion") or "")
        return body

    async def hold(self, body: Manifest, cache: LoopCache) -> None:
        """Write the finalizer before anything is created that a deletion has to remove.

        kopf writes it, too, but starts the loop without waiting for it, and its attempts may fail.

        Raises:
            StatusOutdated: the object has changed since it was read.
            KubeError: the API server refuses the finalizer.
        """
        metadata = body["metadata"]
        held = metadata.get("finalizers") or []
        if names.FINALIZER in held:
            return
        change = {"resourceVersion": metadata.get("resourceVersion"), "finalizers": [*held, names.FINALIZER]}
        try:
            answer = await self._kube.patch(TUNNEL, metadata["namespace"], metadata["name"], {"metadata": change})
        except KubeError as error:
            if error.status == 409:
                raise StatusOutdated(str(error)) from error
            raise
        cache.version = str(answer["metadata"].get("resourceVersion") or "")


def parsed(body: Mapping[str, Any], cache: LoopCache) -> Resource:
    """The object, validated once for each of its generations.

    Raises:
        ValidationError: this release cannot read the object.
    """
    metadata = body["metadata"]
    parts = ("uid", "generation", "creationTimestamp", "deletionTimestamp", "annotations")
    key = [metadata.get(part) for part in parts] if metadata.get("generation") else None
    if key is None or cache.parsed is None or cache.parsed[0] != key:
        cache.parsed = key, TablestoreTunnel.from_body({**body, "status": {}}), {}
    _, found, rendered = cache.parsed
    return Resource(found, body.get("status") or {}, rendered)
