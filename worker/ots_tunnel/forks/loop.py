"""An event loop that stays with the process that has made it."""

from __future__ import annotations

import asyncio
import os
import selectors
import weakref
from collections import deque


class StayingLoop(asyncio.SelectorEventLoop):
    """Does nothing in processes that are forked while it runs.

    A child has a copy of the loop. The callbacks that are due would run there once more, and a wait for descriptors
    would take the parent's events away, since both processes have one set of them.
    """

    def __init__(self) -> None:
        self._descriptors = selectors.DefaultSelector()
        super().__init__(self._descriptors)
        _loops.add(self)

    def stop_in_the_child(self) -> None:
        """Call nothing any more: the next turn raises ValueError, and nothing gets to a connection.

        What the loop refers to stays: a task that is destroyed would run its `finally` in the child.
        """
        connections = list(self._descriptors.get_map().values())
        self._descriptors.close()  # before the next line: it leaves a descriptor for that
        nowhere = os.open(os.devnull, os.O_RDWR)
        for connection in connections:
            os.dup2(nowhere, connection.fd, inheritable=False)
        os.close(nowhere)
        nothing = asyncio.Handle(_stop_in_the_child, (), self)
        nothing.cancel()
        due: deque[asyncio.Handle] = self._ready  # type: ignore[has-type]  # asyncio has no other way to them
        self._ready = deque([nothing] * len(due))  # the turn that is under way takes as many as there were
        _stopped.append((self, due, connections))


_loops: weakref.WeakSet[StayingLoop] = weakref.WeakSet()
#: In a child: its parent's loops, the callbacks that are due, and who waits for descriptors.
_stopped: list[tuple[StayingLoop, object, object]] = []


def _stop_in_the_child() -> None:
    for loop in list(_loops):
        if not loop.is_closed():
            loop.stop_in_the_child()
    _loops.clear()


os.register_at_fork(after_in_child=_stop_in_the_child)
