"""Handlers of signals that a forked process gets in the place of its parent's."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

#: The signals that a worker handles itself.
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

#: Handlers from before each run, the last ones at the end.
_former: dict[object, Mapping[int, Any]] = {}


class _Masks(threading.local):
    """The signal masks of a thread that forks, from before it did; a handler of a signal may fork meanwhile."""

    def __init__(self) -> None:
        self.former: list[set[int]] = []


_masks = _Masks()


@contextlib.contextmanager
def former_handlers_for_children() -> Iterator[None]:
    """Give processes that are forked in the meantime the handlers of `SIGNALS` that are set now.

    With the run's own, which do nothing in a child, `terminate` would not end it. Signals of a child are not written to
    the run's descriptor either, by which they would be taken for the parent's. SIG_IGN stays where the user's code has
    set it in the meantime.
    """
    handlers: Mapping[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # other threads cannot set handlers
        handlers = {number: signal.getsignal(number) for number in SIGNALS}
    run = object()
    _former[run] = handlers
    try:
        yield
    finally:
        _former.pop(run, None)  # a child has forgotten it already


def ignored(*_: object) -> None:
    """A handler that lets a signal pass. A program that is started meanwhile would inherit SIG_IGN, and not this."""


def _hold_back() -> None:
    """Let the signals wait while a process is forked: one that comes too early would meet its parent's handlers."""
    held = SIGNALS if any(_former.values()) else ()
    _masks.former.append({int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, held)})


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.former.pop())


def _give_back_in_the_child() -> None:
    runs = tuple(_former.values())
    if any(runs):
        signal.set_wakeup_fd(-1)
    for handlers in reversed(runs):
        for number, handler in handlers.items():
            # ignored or not: that is for children, around the start of a pool. A function may call the run's handler.
            if signal.getsignal(number) not in (signal.SIG_IGN, signal.SIG_DFL):
                # one that was not set from Python cannot be set again
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
    _former.clear()
    # what the first fork of several held back: a child that a handler forks during one has no signal blocked
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.former[0])
    _masks.former.clear()


os.register_at_fork(before=_hold_back, after_in_parent=_let_through, after_in_child=_give_back_in_the_child)
