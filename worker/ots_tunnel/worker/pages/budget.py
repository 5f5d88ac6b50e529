"""The bytes that a worker may hold: one budget for all channels, first come, first served.

Before a read is sent, it reserves the room of the dearest page seen so far (`Reservation`), `LEAST_SHARE_BYTES` at
least. What a page costs is the sink's declaration (`sinks.cost`). When the page has come, its own cost decides how much
of the room is kept (`Share`), until its records are released.

A read without any byte of an answer gives its room back after `PATIENCE`, so that a few silent connections do not stop
all channels. When its answer begins after all, the rest waits for room, in the kernel and at the service: however many
channels were silent together, their pages come into memory one after the other. A read whose answer comes slowly keeps
its room.

Source: docs/architecture.md rule 7.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from types import TracebackType
from typing import Self

from ots_tunnel.transport import AT_ONCE

#: A page is assumed to have at least this size, bytes.
LEAST_PAGE_BYTES = 4 << 20
#: A read holds its page twice: in pieces, and as a whole.
READ_COPIES = 2
#: Seconds after which a read lends its room to others if nothing of its answer is there.
PATIENCE = 5.0
#: The first reads reserve this much at least, bytes.
LEAST_SHARE_BYTES = LEAST_PAGE_BYTES * READ_COPIES


class ByteBudget:
    """Admits reads while their pages fit.

    Args:
        total_bytes: the limit. A larger page is admitted alone; otherwise it could never be read.
        least_share_bytes: what a page of `LEAST_PAGE_BYTES` costs the sink: the first reads reserve it.
    """

    def __init__(self, total_bytes: int, least_share_bytes: int = LEAST_SHARE_BYTES) -> None:
        self._total = total_bytes
        self._used = 0
        self._largest = max(LEAST_SHARE_BYTES, least_share_bytes)
        self._turn = asyncio.Lock()  # wakes in the order of arrival, so that no channel starves
        self._changed = asyncio.Event()

    def __repr__(self) -> str:
        return f"ByteBudget({self._used} of {self._total} bytes)"

    @property
    def used_bytes(self) -> int:
        """Bytes reserved or held."""
        return self._used

    async def reserve(self) -> Reservation:
        """Wait until the largest page seen so far fits, and take its room for one read."""
        async with self._turn:
            while self._used and self._used + self._largest > self._total:
                self._changed.clear()
                await self._changed.wait()
            return Reservation(self, self._largest)

    def _take(self, more_bytes: int) -> None:
        self._used += more_bytes
        self._changed.set()

    def _learn(self, taken_bytes: int) -> None:
        self._largest = max(self._largest, taken_bytes)


class Reservation:
    """Room for the page of one read: a context that gives back the room that `keep` did not turn into a share."""

    __slots__ = ("_budget", "_has_begun", "_held_bytes")

    def __init__(self, budget: ByteBudget, held_bytes: int) -> None:
        self._budget = budget
        self._held_bytes = held_bytes
        self._has_begun = False
        budget._take(held_bytes)

    def __enter__(self) -> Self:
        """Read inside of the context."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give back the room that is left."""
        self._budget._take(-self._held_bytes)
        self._held_bytes = 0

    def lend(self) -> None:
        """Give the room back while the read hangs, but not once its answer has begun."""
        if not self._has_begun:
            self._budget._take(-self._held_bytes)
            self._held_bytes = 0

    def regain(self) -> Awaitable[None]:
        """The answer begins: wait for the room that was lent; at once where none was."""
        self._has_begun = True
        return AT_ONCE if self._held_bytes else self._reserve_again()

    async def _reserve_again(self) -> None:
        again = await self._budget.reserve()
        self._held_bytes, again._held_bytes = again._held_bytes, 0

    def keep(self, taken: int) -> Share:
        """The room that a page of that cost takes in a sink; the budget learns the cost for later reads."""
        self._budget._learn(taken)
        self._budget._take(taken - self._held_bytes)
        self._held_bytes = 0
        return Share(self._budget, taken)


class Share:
    """The room of one page, given back once by its owner."""

    __slots__ = ("_budget", "held_bytes")

    def __init__(self, budget: ByteBudget, held_bytes: int) -> None:
        self._budget = budget
        self.held_bytes = held_bytes

    def release(self) -> None:
        """Give the room back; a second call changes nothing."""
        self._budget._take(-self.held_bytes)
        self.held_bytes = 0
