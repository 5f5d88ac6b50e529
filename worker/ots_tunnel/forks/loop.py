"""An event loop that stays with the process that has made it."""

from __future__ import annotations

import asyncio
import asyncio.selector_events
import contextlib
import os
import selectors
import stat
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NoReturn, TypeVar

from ots_tunnel.forks.ending import leaving_ends_a_child

R = TypeVar("R")


class StayingLoop(asyncio.SelectorEventLoop):
    """Does nothing in processes that are forked while it runs.

    A child has a copy of the loop. The callbacks that are due would run there once more, and a wait for descriptors
    would take the parent's events away, since both processes have one set of them.
    """

    def __init__(self) -> None:
        self._descriptors = selectors.DefaultSelector()
        super().__init__(self._descriptors)
        _loops.add(self)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]  # it binds types
        """See `asyncio`; a child that leaves the function would work on the calls of the pool."""
        if executor is None or isinstance(executor, ThreadPoolExecutor):
            return super().run_in_executor(executor, partial(_called, func), *args)
        return super().run_in_executor(executor, func, *args)

    def stop_in_the_child(self) -> None:
        """Call nothing any more: the next turn raises RuntimeError, and nothing gets to a connection.

        What the loop refers to stays: a task that is destroyed would run its `finally` in the child.
        """
        waiting = list(self._descriptors.get_map().values())
        transports = list(self._transports.items())  # type: ignore[attr-defined]  # asyncio has no other way to them
        self._descriptors.close()
        self._selector = _Stopped()
        _cut({*(key.fd for key in waiting if _is_the_loops(key)), *(fd for fd, one in transports if _has(one, fd))})
        nothing = asyncio.Handle(_stop_in_the_child, (), self)
        nothing.cancel()
        due: deque[asyncio.Handle] = self._ready  # type: ignore[has-type]  # as above
        self._ready = deque([nothing] * len(due))  # the turn that is under way takes as many as there were
        _kept.append((self, due, waiting, transports))


class _Stopped(selectors.SelectSelector):
    """What the copy of a loop waits with: connections may be closed in the child, as its copies of them."""

    def select(self, timeout: float | None = None) -> NoReturn:
        raise RuntimeError("the event loop is that of another process")


def _is_the_loops(key: selectors.SelectorKey) -> bool:
    """Whether the loop itself waits for a descriptor, and not a function of the user's code."""
    handles = [handle for handle in key.data if handle is not None]
    callbacks = [handle._callback for handle in handles]
    return any(getattr(callback, "__module__", None) == asyncio.selector_events.__name__ for callback in callbacks)


def _has(transport: asyncio.BaseTransport, descriptor: int) -> bool:
    """Whether the transport's connection is open: a closed one keeps its number, which may be another file's by now.

    It need not be waited for: its peer may send faster than its reader reads.
    """
    connection = transport.get_extra_info("socket")
    return connection is not None and connection.fileno() == descriptor


def _cut(descriptors: Iterable[int]) -> None:
    """Put nothing in the places of sockets: their numbers stay taken, and what is sent to them is an error."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        with contextlib.suppress(OSError):  # it is closed, by a hook of the user's code
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.dup2(nowhere, descriptor, inheritable=False)
    os.close(nowhere)


def _called(function: Callable[..., R], *arguments: Any) -> R:
    with leaving_ends_a_child():
        return function(*arguments)


_loops: weakref.WeakSet[StayingLoop] = weakref.WeakSet()
#: In a child: its parent's loops, the callbacks that are due, and who waits for descriptors.
_kept: list[tuple[StayingLoop, object, object, object]] = []


def _stop_in_the_child() -> None:
    for loop in list(_loops):
        if not loop.is_closed():
            loop.stop_in_the_child()
    _loops.clear()


os.register_at_fork(after_in_child=_stop_in_the_child)
