"""Calls to the API server whose answers go into the copies that watches keep: what was written is read at once."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ots_tunnel_operator.kube.cluster import Change, Cluster, Listing, Selection
from ots_tunnel_operator.kube.kinds import Kind, Manifest, kind_of
from ots_tunnel_operator.kube.watched import Watched


class WriteThrough:
    """Implements `Cluster`; reads come from the API server, for a look right before a write."""

    def __init__(self, cluster: Cluster, watched: Watched) -> None:
        self._cluster = cluster
        self._watched = watched

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        """See `Reader.get`; the answer is kept."""
        found = await self._cluster.get(kind, namespace, name)
        return None if found is None else self._kept(kind, found)

    async def stored_version(self, kind: Kind, namespace: str, name: str) -> str:
        """See `Reader.stored_version`."""
        return await self._cluster.stored_version(kind, namespace, name)

    async def list(self, kind: Kind, namespace: str, selector: str) -> list[Manifest]:
        """See `Reader.list`."""
        return await self._cluster.list(kind, namespace, selector)

    async def listing(self, selection: Selection, rest: str = "") -> Listing:
        """See `Cluster.listing`."""
        return await self._cluster.listing(selection, rest)

    def watch(self, selection: Selection, since: str, seconds: float) -> AsyncIterator[Change]:
        """See `Cluster.watch`."""
        return self._cluster.watch(selection, since, seconds)

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """See `Cluster.create`."""
        return self._kept(kind, await self._cluster.create(kind, manifest))

    async def replace(self, kind: Kind, manifest: Manifest) -> Manifest:
        """See `Cluster.replace`."""
        return self._kept(kind, await self._cluster.replace(kind, manifest))

    async def apply(self, manifest: Manifest) -> Manifest:
        """See `Cluster.apply`."""
        return self._kept(kind_of(manifest), await self._cluster.apply(manifest))

    async def try_apply(self, manifest: Manifest) -> None:
        """See `Cluster.try_apply`."""
        await self._cluster.try_apply(manifest)

    async def patch(self, kind: Kind, namespace: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        """See `Cluster.patch`."""
        return self._kept(kind, await self._cluster.patch(kind, namespace, name, change, subresource))

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> None:
        """See `Cluster.delete`."""
        await self._cluster.delete(kind, namespace, name, uid=uid)

    async def close(self) -> None:
        """See `Cluster.close`."""
        await self._cluster.close()

    def _kept(self, kind: Kind, manifest: Manifest) -> Manifest:
        if "metadata" in manifest:
            self._watched.accept(kind, manifest)
        return manifest
