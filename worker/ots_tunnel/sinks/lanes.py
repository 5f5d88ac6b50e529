"""Requests in flight, several at a time: the same way for every sink that has lanes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

Request = Coroutine[None, None, None]


async def fill_lanes(lanes: int, following: Callable[[], Request | None], stop: Callable[[], bool] = bool) -> None:
    """Keep up to `lanes` requests under way until there is nothing left; none is under way afterwards.

    Args:
        following: the next request; None while there is none, asked again when one has ended.
        stop: True ends it after the requests under way.

    Raises:
        Exception: what a request raised; the others are cancelled.
    """
    if lanes == 1:
        # One after the other needs no task for each, nor the rounds of the loop that waiting for tasks takes.
        while not stop() and (only := following()) is not None:
            await only
        return
    running: set[asyncio.Task[None]] = set()
    try:
        while not stop():
            while len(running) < lanes and (request := following()) is not None:
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
