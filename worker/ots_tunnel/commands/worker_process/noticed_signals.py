"""Signals that are noticed while the event loop hangs."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from typing import Final

from ots_tunnel.forks.ending import forks

#: Seconds that the end waits for the thread, which has nothing to do any more.
ENDING: Final = 1.0


@contextlib.contextmanager
def noticed_signals(numbers: Collection[int], call: Callable[[], object]) -> Iterator[None]:
    """Call a function at every one of these signals, on a thread of its own, whatever the event loop does.

    Python writes the number of each signal that has a handler to one file descriptor. The running loop has set its own
    by `add_signal_handler`, and gets every number from here in the meantime.

    Args:
        numbers: of the signals. Other ones, such as those of the user's code, are passed on alone.
    """
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    loops = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    thread = threading.Thread(target=_pass_on, args=(reading, loops, numbers, call), name="signals", daemon=True)
    thread.start()
    parent = forks()
    try:
        yield
    finally:
        if forks() == parent:  # a child's descriptor is another one, of a socket that is its parent's
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
