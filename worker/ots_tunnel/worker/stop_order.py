"""The order to stop, by a drain or by closing at once, and pauses that end with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class StopOrder:
    """Given once, and for good.

    Args:
        reconnect: bounds of the random pause before another try, seconds.
        entropy: replaced in tests.
    """

    def __init__(self, reconnect: tuple[float, float], entropy: Callable[[], float]) -> None:
        self._reconnect = reconnect
        self._entropy = entropy
        self._given = asyncio.Event()
        self._at_once = asyncio.Event()

    def __repr__(self) -> str:
        return f"StopOrder({self.is_given})"

    @property
    def is_given(self) -> bool:
        """Whether the worker is to end."""
        return self._given.is_set()

    @property
    def is_urgent(self) -> bool:
        """Whether the worker is to end at once."""
        return self._at_once.is_set()

    def give(self, *, at_once: bool = False) -> None:
        """Let the worker end."""
        self._given.set()
        if at_once:
            self._at_once.set()

    async def wait(self, seconds: float) -> None:
        """Sleep; ends early with the order."""
        await _sleep_until(self._given, seconds)

    async def wait_unless_urgent(self, seconds: float) -> None:
        """Sleep; ends early with the order to end at once."""
        await _sleep_until(self._at_once, seconds)

    async def pause_before_retry(self) -> None:
        """Wait for a random time before another try; ends early with the order."""
        shortest, longest = self._reconnect
        await self.wait(shortest + (longest - shortest) * self._entropy())


async def _sleep_until(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass  # the pause is over
