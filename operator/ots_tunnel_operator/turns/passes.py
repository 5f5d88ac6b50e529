"""The turn of a pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self


class PassTurn:
    """The turn of one pass, held from `async with` on.

    Args:
        turns: bounds the passes that run at once; None sets no bound.
    """

    def __init__(self, turns: asyncio.Semaphore | None = None) -> None:
        self._turns = turns
        self._held = False

    async def __aenter__(self) -> Self:
        await self._take()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._give_back()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Let other passes run meanwhile. After an error the pass ends, which needs no turn."""
        self._give_back()
        yield
        await self._take()

    async def _take(self) -> None:
        if self._turns is not None:
            await self._turns.acquire()
            self._held = True

    def _give_back(self) -> None:
        if self._turns is not None and self._held:
            self._held = False
            self._turns.release()
