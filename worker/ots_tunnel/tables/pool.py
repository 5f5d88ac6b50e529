"""The threads for blocking calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from ots_tunnel.threads import DaemonThreads

R = TypeVar("R")

#: Threads for blocking calls. Table calls are rare: the service allows ten a second per instance.
POOL_THREADS = 4


async def run_blocking(call: Callable[..., R], *args: Any) -> R:
    """Run a blocking call in the threads that all table calls of the process share.

    A cancelled caller stops waiting; the call itself ends by its own timeout, or with the process, which does not wait
    for it.
    """
    return await _threads().run(call, *args)


@cache
def _threads() -> DaemonThreads:
    return DaemonThreads("table-admin", POOL_THREADS)
