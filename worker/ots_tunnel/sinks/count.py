"""A sink that counts records and drops them, to measure the worker without a destination."""

from __future__ import annotations

from typing import Self

from ots_tunnel.config import CountSinkConfig, SinkDocument
from ots_tunnel.protocol.page import total_size
from ots_tunnel.sinks import Batch, Guard, Immediate, PageCost


class CountSink(Immediate):
    """Confirms every batch at once; `rows` and `bytes` are what it received."""

    cost = PageCost(2, 100)

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0

    @classmethod
    def from_config(cls, config: SinkDocument, section: CountSinkConfig) -> Self:
        """The sink of a worker's document."""
        return cls()

    def __repr__(self) -> str:
        return f"CountSink({self.rows} rows, {self.bytes} bytes)"

    async def open(self) -> None:
        """Nothing to open."""

    async def write(self, batch: Batch, guard: Guard) -> None:
        """Count the records of `batch`.

        Raises:
            OwnershipLost: the guard forbids to send.
        """
        guard.check()
        self.rows += len(batch.records)
        self.bytes += total_size(batch.records)

    async def close(self) -> None:
        """Nothing to close."""
