"""Requests in flight, several at a time: used by every sink that has lanes.

A sink makes the coroutine of a request only when a lane is free. Its bookkeeping (`grouping`, waves) therefore sees
which rows are stored before it chooses the next ones, and a row never has two requests in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine

Request = Coroutine[None, None, None]


async def _nothing() -> None:
    """Requests need no preparation."""


async def fill_lanes(
    lanes: int,
    next_request: Callable[[], Request | None],
    stop: Callable[[], bool] = bool,
    prepare: Callable[[], Awaitable[None]] = _nothing,
) -> None:
    """Keep up to `lanes` requests in flight until there are no more; none is in flight afterwards.

    Args:
        next_request: makes the next request; None means that there is none now. It is called again when a request
            has ended, which may have made room for another one.
        stop: True ends it after the requests in flight.
        prepare: awaited before each call of `next_request`.

    Raises:
        Exception: what a request raised; the others are cancelled.
    """
    if lanes == 1:
        # Requests in sequence need neither a task each nor the event loop's rounds that waiting for tasks takes.
        return await _in_sequence(next_request, stop, prepare)
    running: set[asyncio.Task[None]] = set()
    try:
        while not stop():
            while len(running) < lanes:
                await prepare()
                if (request := next_request()) is None:
                    break
                running.add(asyncio.create_task(request, name="lane"))
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        if running:
            await asyncio.wait(running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _in_sequence(
    next_request: Callable[[], Request | None], stop: Callable[[], bool], prepare: Callable[[], Awaitable[None]]
) -> None:
    while not stop():
        await prepare()
        if (only := next_request()) is None:
            return
        await only
