"""Watches: events of one kind after a version, with delay, bookmarks, breaks and 410.

Theory of operation
-------------------
A watch is a queue that the store's listener fills. Its reader gets every event once and in order, later by a delay
that the network's seed decides. A watch ends in one of three ways, and a client has to survive all of them: the server
closes it after some minutes, the connection breaks at any moment, or the server says that the version is too old (410).
After 410 the client lists again; what was deleted meanwhile is then absent, and no DELETED is ever sent for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from tests.simulation.apiserver.refusal import Refusal
from tests.simulation.apiserver.store import Event, Key, Manifest, Store

#: Type of an event that only says which version the watch has reached.
BOOKMARK = "BOOKMARK"


class Watches:
    """The open watches of one store.

    Args:
        delay: seconds by which the next event is late.
        seconds: until the server closes a watch by itself.
    """

    def __init__(self, store: Store, delay: Callable[[], float], seconds: Callable[[], float]) -> None:
        self._store = store
        self._delay = delay
        self._seconds = seconds
        self._queues: list[asyncio.Queue[Event | None]] = []
        #: Seconds after which something between cuts each watch, before its first event; None while nothing does.
        self.cut_after: Callable[[], float] | None = None
        before = store.listener

        def publish(event: Event) -> None:
            before(event)
            for queue in self._queues:
                queue.put_nowait(event)

        store.listener = publish

    def break_all(self) -> None:
        """Break every open watch; what was under way in it is lost."""
        for queue in self._queues:
            while not queue.empty():
                queue.get_nowait()
            queue.put_nowait(None)

    async def events(
        self, selects: Callable[[Key, Manifest], bool], version: int | None, seconds: float
    ) -> AsyncGenerator[Event, None]:
        """Selected events after a version, until the watch ends; the first one is a bookmark of that version.

        Args:
            selects: whether an object is watched.
            version: None begins with an ADDED for every selected object that exists.
            seconds: how long the client wants to watch.

        Raises:
            Refusal: 410, the version is too old.
        """
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        began = self._store.version if version is None else version
        for known in self._existing(selects) if version is None else self._since(version):
            queue.put_nowait(known)
        self._queues.append(queue)
        try:
            ends = asyncio.get_running_loop().time() + min(seconds, self._seconds())
            yield _bookmark(began)
            if self.cut_after is not None:
                await asyncio.sleep(self.cut_after())
                return
            while (event := await _next(queue, ends)) is not None:
                await asyncio.sleep(self._delay())
                if selects(event.key, event.object):
                    yield event
                elif queue.empty():
                    yield _bookmark(event.version)
        finally:
            self._queues.remove(queue)

    def _since(self, version: int) -> list[Event]:
        try:
            return self._store.after(version)
        except LookupError as error:
            raise Refusal(410, "Expired", str(error)) from error

    def _existing(self, selects: Callable[[Key, Manifest], bool]) -> list[Event]:
        return [
            Event(int(manifest["metadata"]["resourceVersion"]), "ADDED", key, manifest)
            for key, manifest in sorted(self._store.objects.items())
            if selects(key, manifest)
        ]


async def _next(queue: asyncio.Queue[Event | None], ends: float) -> Event | None:
    """The next event; None at the end of the watch. The limit must not reach into the code of the reader."""
    try:
        async with asyncio.timeout_at(ends):
            return await queue.get()
    except TimeoutError:
        return None


def _bookmark(version: int) -> Event:
    return Event(version, BOOKMARK, ("", "", ""), {"metadata": {"resourceVersion": str(version)}})
