"""What kopf does for the operator: it lists and watches the objects, and processes the events of each (`kopf_object`).

After 410 it lists again, and tells nobody what has vanished meanwhile. The handlers are those of
`ots_tunnel_operator.handlers`: kopf itself needs real connections and threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ots_tunnel_operator.handlers import WATCH_SECONDS
from ots_tunnel_operator.kube.client import KubeError
from ots_tunnel_operator.kube.cluster import Cluster, Selection
from ots_tunnel_operator.kube.kinds import TUNNEL, Manifest
from ots_tunnel_operator.runtime import Runtime
from tests.simulation.fleet.kopf_object import KopfObject

#: Seconds until kopf opens a watch again after an error.
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
        self._objects: dict[str, KopfObject] = {}

    async def run(self) -> None:
        """Follow the objects until cancelled."""
        version = ""
        while True:
            try:
                if not version:
                    listing = await self._cluster.listing(Selection(TUNNEL))
                    for body in listing.items:
                        self._take(body)
                    version = listing.version
                async for change in self._cluster.watch(Selection(TUNNEL), version, WATCH_SECONDS):
                    version = change.object["metadata"]["resourceVersion"]
                    if change.type == "DELETED":
                        self._gone(change.object["metadata"]["uid"])
                    elif change.type != "BOOKMARK":
                        self._take(change.object)
            except KubeError as error:
                if error.status == 410:
                    version = ""
                await asyncio.sleep(PAUSE_SECONDS)

    def _take(self, body: Manifest) -> None:
        uid = body["metadata"]["uid"]
        if uid not in self._objects:
            self._objects[uid] = KopfObject(self._runtime, self._cluster, body, self._failed)
        self._objects[uid].put(body)

    def _gone(self, uid: str) -> None:
        known = self._objects.pop(uid, None)
        if known is not None:
            known.put(None)
