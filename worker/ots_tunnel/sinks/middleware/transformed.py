"""Middleware that hands over what a transform leaves of a batch."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

from ots_tunnel.fence import Guard
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, PageCost
from ots_tunnel.sinks.middleware.base import Middleware
from ots_tunnel.sinks.middleware.selection import Selection
from ots_tunnel.sinks.middleware.transform import Omitted, Transform
from ots_tunnel.sinks.slices import Turns
from ots_tunnel.sinks.tally import Tally


class Transformed(Middleware):
    """Hands over the records that a transform leaves."""

    cost = PageCost(1.5, 150)  # rows that were joined anew

    def __init__(self, transform: Transform) -> None:
        self._selection = Selection(transform)
        self._turns = Turns()
        self.omitted = Omitted()

    def __repr__(self) -> str:
        return f"Transformed({self._selection!r})"

    async def portions(self, batch: Batch, guard: Guard) -> AsyncGenerator[Batch]:
        """See `Middleware.portions`.

        Raises:
            CodecError: a record is malformed.
        """
        records, at = list(batch.records), 0
        passed: list[Record] = []
        while at < len(records):
            if at:
                await self._turns.next()
            part, at = self._selection.part(records, at, self.omitted)
            passed += part
        if passed:
            yield replace(batch, records=passed)

    def tally(self) -> Tally:
        """See `Middleware.tally`."""
        return Tally(records_filtered=self.omitted.records, cells_left_out=self.omitted.cells)
