"""What kopf does for the operator: it lists and watches the objects, and processes the events of each (`kopf_object`).

After 410 it lists again, and tells nobody what has vanished meanwhile. A list or a watch that is refused by 403 or 5xx
for 54 s, or by 404 at once, ends the process, which its Deployment starts again. The handlers are those of
`ots_tunnel_operator.handlers`: kopf itself needs real connections and threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from ots_tunnel_operator.handlers import WATCH_SECONDS
from ots_tunnel_operator.kube.cluster import Cluster, Selection
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL, Manifest
from ots_tunnel_operator.runtime import Runtime
from tests.simulation.fleet.kopf_object import BACKOFFS, KopfObject

#: Seconds until kopf opens a watch again.
PAUSE_SECONDS = 2.0


class KopfEnded(Exception):
    """A watch was refused for longer than kopf repeats a call: the process of the operator ends."""


class _ListAgain(Exception):
    """What was listed is too old to be watched, or kopf begins anew."""


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
        self._version = ""
        self._attempts = 0

    async def run(self) -> None:
        """Follow the objects until cancelled.

        Raises:
            KopfEnded: the API server goes on refusing the list or the watch, or serves no such kind.
        """
        while True:
            with suppress(_ListAgain):
                self._version = ""
                await self._repeat(self._list)
                while True:
                    await self._repeat(self._watch)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _list(self) -> None:
        listing = await self._cluster.listing(Selection(TUNNEL))
        for body in listing.items:
            self._take(body)
        self._version = listing.version

    async def _watch(self) -> None:
        async for change in self._cluster.watch(Selection(TUNNEL), self._version, WATCH_SECONDS):
            self._attempts = 0
            self._version = change.object["metadata"]["resourceVersion"]
            if change.type == "DELETED":
                self._gone(change.object["metadata"]["uid"])
            elif change.type != "BOOKMARK":
                self._take(change.object)

    async def _repeat(self, call: Callable[[], Awaitable[None]]) -> None:
        """Make a call as kopf does: repeat what may pass, for 54 s, and list again where that helps."""
        self._attempts = 0
        while True:
            try:
                return await call()
            except KubeError as error:
                if error.status == 410:
                    raise _ListAgain from error
                if error.status not in (0, 403, 429) and error.status < 500:
                    raise KopfEnded(str(error)) from error
                if self._attempts == len(BACKOFFS):
                    if error.status in (0, 429):
                        raise _ListAgain from error
                    raise KopfEnded(str(error)) from error
                await asyncio.sleep(BACKOFFS[self._attempts])
                self._attempts += 1

    def _take(self, body: Manifest) -> None:
        uid = body["metadata"]["uid"]
        if uid not in self._objects:
            self._objects[uid] = KopfObject(self._runtime, self._cluster, body, self._failed)
        self._objects[uid].put(body)

    def _gone(self, uid: str) -> None:
        known = self._objects.pop(uid, None)
        if known is not None:
            known.put(None)
