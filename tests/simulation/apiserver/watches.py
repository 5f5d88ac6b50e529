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
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from tests.simulation.apiserver.refusal import Refusal
from tests.simulation.apiserver.store import Event, Store


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A version that the watch has reached without an event of its kind."""

    version: int


class Watches:
    """The open watches of one store.

    Args:
        delay: seconds by which the next event is late.
        seconds: until the server closes a watch.
    """

    def __init__(self, store: Store, delay: Callable[[], float], seconds: Callable[[], float]) -> None:
        self._store = store
        self._delay = delay
        self._seconds = seconds
        self._queues: list[asyncio.Queue[Event | None]] = []
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

    async def events(self, kind: str, version: int) -> AsyncIterator[Event | Bookmark]:
        """Events of a kind after a version, until the watch ends.

        Raises:
            Refusal: 410, the version is too old.
        """
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        try:
            for known in self._store.after(version):
                queue.put_nowait(known)
        except LookupError as error:
            raise Refusal(410, "Expired", str(error)) from error
        self._queues.append(queue)
        try:
            async with asyncio.timeout(self._seconds()):
                while (event := await queue.get()) is not None:
                    await asyncio.sleep(self._delay())
                    if event.key[0] == kind:
                        yield event
                    elif queue.empty():
                        yield Bookmark(event.version)
        except TimeoutError:
            return
        finally:
            self._queues.remove(queue)
