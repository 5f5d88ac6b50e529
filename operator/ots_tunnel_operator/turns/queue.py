"""Turns by seniority, and how long one pass waits for them."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Self

from ots_tunnel.errors import TunnelError

#: Seconds for which the calls of one pass wait for others. With the poll before it and a call without an answer less
#: than the minute in which an object has to say that it could not be observed (docs/architecture.md rule 11).
PATIENCE_SECONDS = 30.0


class NoTurn(TunnelError):
    """A call was not made: its turn has not come in time. It says nothing about the instance, which answers others."""


class Patience:
    """How long the calls of one pass wait, and before which others they go.

    Attributes:
        place: in the queue; the lowest goes first. It is that of the pass, not of a call: otherwise the second calls of
            all passes would wait behind their first ones, and none would come to its end in time.
        has_ended: whether a call of the pass has not got its turn.
    """

    _places = itertools.count()

    def __init__(self, place: int | None = None) -> None:
        self.place = next(self._places) if place is None else place
        self.has_ended = False
        self._left = PATIENCE_SECONDS
        self._waits = 0
        self._begun = 0.0

    @classmethod
    def after(cls, last: Self | None) -> Self:
        """That of the next pass: it keeps the place in the queue where the last one has given up."""
        return cls(last.place if last is not None and last.has_ended else None)

    @property
    def ends_at(self) -> float:
        """Time at which it ends, if its calls wait from now on."""
        return (self._begun if self._waits else asyncio.get_running_loop().time()) + self._left

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of a wait; what several calls wait at once counts once."""
        loop = asyncio.get_running_loop()
        if not self._waits:
            self._begun = loop.time()
        self._waits += 1
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits:
                self._left -= loop.time() - self._begun


class Turns:
    """A number of turns; the next one is taken by whose place is the lowest, so by who has waited longest.

    Args:
        number: of turns that are held at once.
    """

    def __init__(self, number: int) -> None:
        self._free = number
        self._order = itertools.count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @property
    def is_free(self) -> bool:
        """Whether one can be taken at once."""
        return self._free > 0

    @asynccontextmanager
    async def taken(self, place: int) -> AsyncIterator[None]:
        """Hold a turn; `place` is that of the pass in the queue."""
        await self._take(place)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, place: int) -> None:
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (place, next(self._order), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # it was given in the moment of the cancellation
                self._give_back()
            raise

    def _give_back(self) -> None:
        while self._waiting:
            turn = heapq.heappop(self._waiting)[-1]
            if not turn.done():
                # not free in between, so that nobody else can take it
                turn.set_result(None)
                return
        self._free += 1
