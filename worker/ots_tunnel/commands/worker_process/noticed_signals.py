"""Signals that are noticed while the event loop hangs."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from typing import Final

#: Seconds that the end waits for the thread, which has nothing to do any more.
ENDING: Final = 1.0

#: Signals that are noticed at present.
_noticed: list[Collection[int]] = []


class _Masks(threading.local):
    """The signal masks of a thread that forks, from before it did; a handler of a signal may fork meanwhile."""

    def __init__(self) -> None:
        self.former: list[set[int]] = []


_masks = _Masks()


def _hold_back() -> None:
    """Let the signals wait while a process is forked: one that comes too early would meet its parent's handlers."""
    former = signal.pthread_sigmask(signal.SIG_BLOCK, itertools.chain.from_iterable(_noticed))
    _masks.former.append({int(number) for number in former})


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.former.pop())


def _let_all_through() -> None:
    """What the first fork of several held back: a child that a handler forks during one has no signal blocked."""
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.former[0])
    _masks.former.pop()


def _forget_in_the_child() -> None:
    """Give the noticed signals back to a process that the user's code has forked, such as one of a pool.

    It has copies of the loop's handlers, which do nothing there, so that `terminate` would not end it; and of the
    descriptor, by which its signals would be taken for its parent's.
    """
    for number in itertools.chain.from_iterable(_noticed):
        signal.set_wakeup_fd(-1)
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    _noticed.clear()
    _let_all_through()


os.register_at_fork(before=_hold_back, after_in_parent=_let_through, after_in_child=_forget_in_the_child)


@contextlib.contextmanager
def noticed_signals(numbers: Collection[int], call: Callable[[], object]) -> Iterator[None]:
    """Call a function at every one of these signals, on a thread of its own, whatever the event loop does.

    Python writes the number of each signal that has a handler to one file descriptor. The running loop has set its own
    by `add_signal_handler`, and gets every number from here in the meantime. Processes that are forked in the meantime
    are without it, and end by these signals as any other process.

    Args:
        numbers: of the signals. Other ones, such as those of the user's code, are passed on alone.
    """
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    loops = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    thread = threading.Thread(target=_pass_on, args=(reading, loops, numbers, call), name="signals", daemon=True)
    thread.start()
    _noticed.append(numbers)
    try:
        yield
    finally:
        if numbers in _noticed:  # not in a child: its descriptor is another one, of a socket that is its parent's
            _noticed.remove(numbers)
            signal.set_wakeup_fd(loops)
            # a child that the user's code has forked has a copy, which a close alone leaves open
            with contextlib.suppress(OSError):
                writing.shutdown(socket.SHUT_RDWR)
        writing.close()
        thread.join(ENDING)  # the loop's descriptor may be closed later, and given to another file


def _pass_on(reading: socket.socket, loops: int, numbers: Collection[int], call: Callable[[], object]) -> None:
    with reading:
        while received := reading.recv(64):
            with contextlib.suppress(OSError):  # full: the loop hangs, and has numbers enough
                os.write(loops, received)
            if any(number in numbers for number in received):
                call()
