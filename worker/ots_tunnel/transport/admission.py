"""Waiting for room for an answer that has begun (`connection`): no longer than it can come, and outside of its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from ots_tunnel.protocol.http.message import HttpResponse


async def admitted_or_done(admission: Awaitable[None], answer: asyncio.Future[HttpResponse | None]) -> None:
    """Await an admission, but no longer than its answer can come: the connection may be closed meanwhile."""
    waiting = asyncio.ensure_future(admission)
    try:
        await asyncio.wait((waiting, answer), return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            await waiting  # for its error
    finally:
        waiting.cancel()


async def outside(limit: asyncio.Timeout, waiting: Awaitable[None]) -> None:
    """Await something whose time does not count."""
    loop, until = asyncio.get_running_loop(), limit.when()
    assert until is not None, "every request has a limit"
    left = until - loop.time()
    limit.reschedule(None)
    await waiting
    limit.reschedule(loop.time() + left)
