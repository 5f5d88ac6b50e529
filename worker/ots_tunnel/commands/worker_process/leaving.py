"""How the process of `ots-tunnel run` ends: with its exit code, without taking Python's interpreter down."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from typing import NoReturn

from ots_tunnel.forks.ending import leaving_ends_a_child
from ots_tunnel.forks.signals import SIGNALS, former_handlers_for_children, ignored


def leave(code: int) -> NoReturn:
    """End the process with an exit code, as Python does it, but for the last step.

    Threads of the user's code have ended, which takes as long as `LastResort` lets it, exit functions have run, and log
    and output are written. Then Python would take its interpreter down. A thread of a library that calls Python in the
    meantime, as one of obstore's does right after an answer of the bucket, aborts the process, and its exit code tells
    nothing.
    """
    with former_handlers_for_children(), leaving_ends_a_child():
        for number in SIGNALS:
            signal.signal(number, ignored)  # the end has begun, and `LastResort` sees to its length
        threading._shutdown()  # type: ignore[attr-defined]  # multiprocessing ends its processes by the same three calls
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        # a reader that is gone, or whatever an object in the stream's place raises: the exit code is the worker's
        with contextlib.suppress(BaseException):
            # as Python does: one may be missing from the start, or closed or replaced by the user's code
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
    os._exit(code)
