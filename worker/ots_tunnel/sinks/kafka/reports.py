"""Delivery reports of the messages of one write: kept by any thread, taken on the event loop.

They come by the ten thousand. So a report makes no object: the parcel of a message is what librdkafka calls, it keeps
its own failure and appends itself to the reports. The writer takes as many at a time as one round may hold.
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
    """Parcels whose messages are reported, in the order in which the reports came."""

    def __init__(self) -> None:
        #: Filled by any thread.
        self.kept: deque[P] = deque()
        self._waiting: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"Reports({len(self.kept)})"

    def take(self, most: int) -> list[P]:
        """Take up to `most` parcels."""
        kept = self.kept
        return [kept.popleft() for _ in range(min(most, len(kept)))]

    async def any(self) -> None:
        """Wait until there is a report."""
        while not self.kept:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting

    def wake(self) -> None:
        """End the wait for a report; without one, it goes on."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
