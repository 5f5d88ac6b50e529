"""What kopf does for the operator: finalizers, one loop per object, one deletion per deleted object.

Theory of operation
-------------------
kopf lists and watches the objects. For an object without our finalizer it writes the finalizer and starts the loop; for
one that is being deleted it stops the loop, runs the deletion, and takes the finalizer away when that has ended. A
deletion that fails is repeated after a minute. After 410 it lists again, and tells nobody what has vanished meanwhile.

The handlers are those of `ots_tunnel_operator.handlers`, line by line: kopf itself needs real connections and threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.handlers import CANCEL_SECONDS, GRACE_SECONDS, WATCH_SECONDS
from ots_tunnel_operator.kube.client import KubeError
from ots_tunnel_operator.kube.cluster import Cluster, Selection
from ots_tunnel_operator.kube.kinds import TUNNEL, Manifest
from ots_tunnel_operator.runtime import Runtime

#: Seconds after which kopf repeats a handler that failed.
RETRY_SECONDS = 60.0
#: Seconds until kopf calls the API server again after an error.
PAUSE_SECONDS = 2.0


class KopfRole:
    """Runs the operator's handlers.

    Args:
        failed: called with a text when a handler ends with an error.
    """

    def __init__(self, runtime: Runtime, cluster: Cluster, failed: Callable[[str], None]) -> None:
        self._runtime = runtime
        self._cluster = cluster
        self._failed = failed
        self._loops: dict[str, asyncio.Task[None]] = {}
        self._deletions: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Follow the objects until cancelled."""
        version = ""
        while True:
            try:
                if not version:
                    listing = await self._cluster.listing(Selection(TUNNEL))
                    for body in listing.items:
                        await self._seen(body)
                    version = listing.version
                async for change in self._cluster.watch(Selection(TUNNEL), version, WATCH_SECONDS):
                    version = change.object["metadata"]["resourceVersion"]
                    if change.type == "DELETED":
                        self._gone(change.object["metadata"]["uid"])
                    elif change.type != "BOOKMARK":
                        await self._seen(change.object)
            except KubeError as error:
                if error.status == 410:
                    version = ""
                await asyncio.sleep(PAUSE_SECONDS)

    async def _seen(self, body: Manifest) -> None:
        metadata = body["metadata"]
        uid, held = metadata["uid"], names.FINALIZER in (metadata.get("finalizers") or ())
        if metadata.get("deletionTimestamp"):
            self._stop(uid)
            if held and uid not in self._deletions:
                self._deletions[uid] = asyncio.create_task(self._delete(body), name=f"delete {metadata['name']}")
        elif not held:
            await self._hold(body)
        elif uid not in self._loops:
            self._loops[uid] = asyncio.create_task(self._loop(body), name=f"loop {metadata['name']}")

    async def _hold(self, body: Manifest) -> None:
        finalizers = [*(body["metadata"].get("finalizers") or ()), names.FINALIZER]
        await self._patch_finalizers(body, finalizers)

    async def _patch_finalizers(self, body: Manifest, finalizers: list[str]) -> None:
        metadata = body["metadata"]
        change: dict[str, Any] = {"metadata": {"finalizers": finalizers}}
        try:
            await self._cluster.patch(TUNNEL, metadata["namespace"], metadata["name"], change)
        except KubeError as error:
            if error.status not in (404, 422):
                raise

    async def _loop(self, body: Manifest) -> None:
        metadata = body["metadata"]
        place, name = metadata["namespace"], metadata["name"]
        cache = self._runtime.cache(metadata["uid"], place, name)
        try:
            await asyncio.sleep(self._runtime.first_pause())
            await self._runtime.reconciler().run(place, name, cache)
        except Exception as error:
            # kopf would log it and go on; here it is a finding
            self._failed(f"the loop of {name} ended with {type(error).__name__}: {error}")

    async def _delete(self, body: Manifest) -> None:
        metadata = body["metadata"]
        uid, place, name = metadata["uid"], metadata["namespace"], metadata["name"]
        while True:
            try:
                await self._runtime.deleter().finish(place, name, self._runtime.cache(uid, place, name))
                await self._runtime.forget(uid, place, name)
                kept = [each for each in metadata.get("finalizers") or () if each != names.FINALIZER]
                await self._patch_finalizers(body, kept)
            except KubeError:
                await asyncio.sleep(PAUSE_SECONDS)
            except Exception as error:
                # as above: kopf would try again later
                self._failed(f"the deletion of {name} ended with {type(error).__name__}: {error}")
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    def _stop(self, uid: str) -> None:
        loop = self._loops.get(uid)
        if loop is not None and not loop.done():
            asyncio.get_running_loop().call_later(GRACE_SECONDS, loop.cancel)
            asyncio.get_running_loop().call_later(GRACE_SECONDS + CANCEL_SECONDS, self._check_ended, loop)

    def _gone(self, uid: str) -> None:
        self._stop(uid)
        self._deletions.pop(uid, None)

    def _check_ended(self, loop: asyncio.Task[None]) -> None:
        if not loop.done():
            self._failed(f"{loop.get_name()} goes on {CANCEL_SECONDS} s after its cancellation")
