"""Delivery reports of the messages of one write: kept by librdkafka's thread, taken on the event loop.

They come by the ten thousand. So nothing is called for each of them on the event loop: the writer takes as many at a
time as one round may hold.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Generic, TypeVar

from ots_tunnel.sinks.kafka.failures import Failure

P = TypeVar("P")


def failure_of(error: Any, *, by_client: bool = False) -> Failure:
    """The failure that a KafkaError reports."""
    return Failure(error.name(), error.str(), error.fatal(), by_client)


class Reports(Generic[P]):
    """What became of messages, each named by what the writer gave with it; a stored one has no failure."""

    def __init__(self) -> None:
        #: Filled by any thread.
        self.kept: deque[tuple[P, Failure | None]] = deque()
        #: Whether the event loop will call `wake` for what is kept.
        self.is_announced = False
        self._waiting: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"Reports({len(self.kept)})"

    def take(self, most: int) -> list[tuple[P, Failure | None]]:
        """Take up to `most` reports, in the order in which they came."""
        kept = self.kept
        return [kept.popleft() for _ in range(min(most, len(kept)))]

    async def any(self) -> None:
        """Wait until there is a report."""
        while not self.kept:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting

    def wake(self) -> None:
        """End the wait for a report."""
        self.is_announced = False  # first: what is kept from now on is announced anew
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
