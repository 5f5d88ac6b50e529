"""The operator's seam to the API server (`ots_tunnel_operator.kube.cluster`), answered by the model.

Every call takes time, and may be refused, out of date or unanswered: `Fate` says which, the region's seed decides it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from ots_tunnel_operator.kube.cluster import Change, Listing, Selection
from ots_tunnel_operator.kube.errors import KindMissing, KubeError
from ots_tunnel_operator.kube.kinds import Kind, Manifest, kind_of
from ots_tunnel_operator.names import FIELD_MANAGER
from tests.simulation.apiserver.api import APPLY, Api, Request
from tests.simulation.apiserver.paths import selects
from tests.simulation.apiserver.refusal import NOT_SERVED, Refusal
from tests.simulation.apiserver.store import Key, copied
from tests.simulation.apiserver.watches import Watches

MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one request.

    Args:
        before: seconds until the server sees it.
        after: seconds until the answer arrives.
        refusal: answered in place of the request's effect.
        is_lost: whether the answer never arrives, although the request took effect.
        versions_behind: by how much a read of one object is out of date.
    """

    before: float = 0.0
    after: float = 0.0
    refusal: Refusal | None = None
    is_lost: bool = False
    versions_behind: int = 0


class ModelCluster:
    """`Cluster` over the model.

    Args:
        fate: decides what becomes of a request.
        may_write: asked right before every write, as by the real client; None allows all.
    """

    def __init__(
        self,
        api: Api,
        watches: Watches | None = None,
        fate: Callable[[Request], Fate] = lambda request: Fate(),
        may_write: Callable[[], bool] | None = None,
    ) -> None:
        self._api = api
        self._watches = watches or Watches(api.store, lambda: 0.0, lambda: 300.0)
        self._fate = fate
        self._may_write = may_write
        self._is_closed = False

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        """See `Cluster.get`."""
        try:
            return await self._call(Request("GET", kind.path(namespace, name)))
        except KubeError as error:
            if _is_absent(error, kind):
                return None
            raise

    async def stored_version(self, kind: Kind, namespace: str, name: str) -> str:
        """See `Cluster.stored_version`."""
        found = await self.get(kind, namespace, name)
        return "" if found is None else str(found["metadata"].get("resourceVersion") or "")

    async def list(self, kind: Kind, namespace: str, selector: str) -> list[Manifest]:
        """See `Cluster.list`."""
        return list((await self.listing(Selection(kind, namespace, selector))).items)

    async def listing(self, selection: Selection, rest: str = "") -> Listing:
        """See `Cluster.listing`."""
        query = {"labelSelector": selection.labels}
        if selection.name:
            query["fieldSelector"] = f"metadata.name={selection.name}"
        answer = await self._call(Request("GET", selection.kind.path(selection.namespace), query=query))
        return Listing(tuple(answer["items"]), answer["metadata"]["resourceVersion"])

    async def watch(self, selection: Selection, since: str, seconds: float) -> AsyncIterator[Change]:
        """See `Cluster.watch`."""
        fate = self._fate(Request("GET", selection.kind.path(selection.namespace), query={"watch": "true"}))
        await asyncio.sleep(fate.before)
        if fate.refusal is not None:
            raise _error(fate.refusal)

        def is_selected(key: Key, manifest: Mapping[str, Any]) -> bool:
            return (
                key[0] == selection.kind.kind
                and selection.namespace in ("", key[1])
                and selection.name in ("", key[2])
                and selects(selection.labels, manifest["metadata"].get("labels") or {})
            )

        try:
            async with aclosing(self._watches.events(is_selected, int(since) if since else None, seconds)) as events:
                async for event in events:
                    yield Change(event.type, copied(event.object))
        except Refusal as refusal:
            raise _error(refusal) from refusal

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """See `Cluster.create`."""
        path = kind.path(manifest["metadata"]["namespace"])
        return await self._call(Request("POST", path, manifest, manager=FIELD_MANAGER))

    async def replace(self, kind: Kind, manifest: Manifest) -> Manifest:
        """See `Cluster.replace`."""
        metadata = manifest["metadata"]
        path = kind.path(metadata["namespace"], metadata["name"])
        return await self._call(Request("PUT", path, manifest, manager=FIELD_MANAGER))

    async def apply(self, manifest: Manifest) -> Manifest:
        """See `Cluster.apply`."""
        metadata = manifest["metadata"]
        path = kind_of(manifest).path(metadata["namespace"], metadata["name"])
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self._call(Request("PATCH", path, manifest, query, APPLY))

    async def try_apply(self, manifest: Manifest) -> None:
        """See `Cluster.try_apply`."""
        metadata = manifest["metadata"]
        path = kind_of(manifest).path(metadata["namespace"], metadata["name"])
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "dryRun": "All"}
        await self._call(Request("PATCH", path, manifest, query, APPLY))

    async def patch(self, kind: Kind, namespace: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        """See `Cluster.patch`."""
        path = kind.path(namespace, name, subresource)
        return await self._call(Request("PATCH", path, change, {"fieldManager": FIELD_MANAGER}, MERGE))

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> None:
        """See `Cluster.delete`."""
        body = {"preconditions": {"uid": uid}} if uid else {}
        try:
            await self._call(Request("DELETE", kind.path(namespace, name), body))
        except KubeError as error:
            if not _is_absent(error, kind):
                raise

    async def close(self) -> None:
        """See `Cluster.close`; a later call is a bug, which is raised as the real client raises it."""
        self._is_closed = True

    async def _call(self, request: Request) -> Manifest:
        if self._is_closed:
            raise RuntimeError("Session is closed")
        if request.method != "GET" and self._may_write is not None and not self._may_write():
            raise KubeError(0, "NotLeading", f"{request.method} {request.path}: the lease is not held")
        # the body as it is now: the caller may change it while the request is under way
        request = replace(request, body=copied(request.body))
        fate = self._fate(request)
        await asyncio.sleep(fate.before)
        if fate.refusal is not None:
            raise _error(fate.refusal)
        behind = fate.versions_behind
        try:
            answer = self._api.call(request, version=self._api.store.version - behind if behind else None)
        except Refusal as refusal:
            await asyncio.sleep(fate.after)
            raise _error(refusal) from refusal
        await asyncio.sleep(fate.after)
        if fate.is_lost:
            raise KubeError(0, "TimeoutError", f"{request.method} {request.path}: no answer")
        return answer


def _is_absent(error: KubeError, kind: Kind) -> bool:
    """As in the real client: a kind that is not served says nothing about one of its objects."""
    return error.status == 404 and (kind.optional or not isinstance(error, KindMissing))


def _error(refusal: Refusal) -> KubeError:
    error = KindMissing if refusal.reason == NOT_SERVED else KubeError
    return error(refusal.status, refusal.reason, refusal.message)
