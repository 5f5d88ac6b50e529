"""The bytes that a worker may hold: one budget for all channels, first come, first served.

Before a read is sent, it reserves the room of the largest page seen so far (`Reservation`): `COPIES` times its bytes,
`LEAST_SHARE_BYTES` at least. When the page has come, its own size decides how much of the room is kept (`Share`), until
its records are released.

Source: docs/architecture.md rule 7.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

#: A page is assumed to have at least this size, bytes.
LEAST_PAGE_BYTES = 4 << 20
#: A read holds its page twice: in pieces, and as a whole.
READ_COPIES = 2
#: Copies of a page on its way through a sink: the answer, its rows in the sink's form, the message made of them, the
#: bytes of the message, and the part that the connection has not sent yet.
COPIES = 5
#: The first reads reserve this much, bytes.
LEAST_SHARE_BYTES = LEAST_PAGE_BYTES * READ_COPIES


class ByteBudget:
    """Admits reads while their pages fit.

    Args:
        total_bytes: the limit. A larger page is admitted alone; otherwise it could never be read.
    """

    def __init__(self, total_bytes: int) -> None:
        self._total = total_bytes
        self._used = 0
        self._largest = LEAST_SHARE_BYTES
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

    __slots__ = ("_budget", "_held_bytes")

    def __init__(self, budget: ByteBudget, held_bytes: int) -> None:
        self._budget = budget
        self._held_bytes = held_bytes
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

    def keep(self, page_bytes: int) -> Share:
        """The room that a page of that size may take in a sink; the budget learns the size for later reads."""
        taken = page_bytes * COPIES
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
