"""The pause between two rounds."""

from __future__ import annotations

import asyncio


async def until_set(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but not longer than some seconds, until the next round."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
