"""The thread pool for blocking calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

R = TypeVar("R")

#: Threads for blocking calls. Table calls are rare: the service allows ten a second per instance.
POOL_THREADS = 4


async def run_blocking(call: Callable[..., R], *args: Any) -> R:
    """Run a blocking call in the pool that all table calls of the process share.

    A cancelled caller stops waiting; the call itself ends by its own timeout.
    """
    return await asyncio.get_running_loop().run_in_executor(_pool(), call, *args)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(POOL_THREADS, thread_name_prefix="table-admin")
