"""Who is told that a call has failed and is repeated, whatever client makes it.

A call may be repeated for more than a minute before its error is raised. A step that waits for calls of several
clients, such as the start of a worker, sees by this why it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ots_tunnel.errors import TunnelError

#: The one who is told, as long as it is in the list; tasks that were begun meanwhile have the same list.
_TOLD: ContextVar[list[Callable[[TunnelError], None]]] = ContextVar("told of repeats")


@contextmanager
def telling_repeats(tell: Callable[[TunnelError], None]) -> Iterator[None]:
    """Call `tell` with the error of every call that is repeated inside the block, and in tasks that it begins."""
    before, told = _TOLD.get([]), [tell]
    _TOLD.set(told)
    try:
        yield
    finally:
        told.clear()
        _TOLD.set(before)


def tell_repeat(error: TunnelError) -> bool:
    """Tell of a call that is repeated; whether somebody is told."""
    told = tuple(_TOLD.get([]))
    for tell in told:
        tell(error)
    return bool(told)
