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

    def __repr__(self) -> str:
        return f"StopOrder({self.is_given})"

    @property
    def is_given(self) -> bool:
        """Whether the worker is to end."""
        return self._given.is_set()

    def give(self) -> None:
        """Let the worker end."""
        self._given.set()

    async def wait(self, seconds: float) -> None:
        """Sleep; ends early with the order."""
        try:
            async with asyncio.timeout(seconds):
                await self._given.wait()
        except TimeoutError:
            pass  # the pause is over

    async def pause_before_retry(self) -> None:
        """Wait for a random time before another try; ends early with the order."""
        shortest, longest = self._reconnect
        await self.wait(shortest + (longest - shortest) * self._entropy())
