"""Room for objects that are nested as deeply as the API server takes them.

A podTemplate may have thousands of levels, and anybody who may create an object may create such a one. Each level is a
call of the JSON reader, and up to four of kopf, which copies and compares a new object. With Python's limit of 1,000 an
object of as many levels would end the process at every start, for all objects, and one half as deep would get no word.
"""

from __future__ import annotations

import resource
import sys

#: Depth of calls in Python; Go's JSON reader takes 10,000 levels.
CALL_DEPTH = 50_000
#: Bytes of the main thread's stack: a call of the JSON reader takes 0.12 kB, one that compares may take more.
STACK_BYTES = 64 * 1024 * 1024


def allow_deep_objects() -> None:
    """Let the main thread, which runs the event loop, read such objects."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    most = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_STACK, (most, hard))
    sys.setrecursionlimit(CALL_DEPTH)
