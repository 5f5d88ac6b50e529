"""Middleware that limits the rows written per second: batches go out in slices, each when its rows are paid for."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from dataclasses import replace

from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId
from ots_tunnel.rate import RateLimit
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.middleware.base import Middleware

#: Seconds' worth of rows in one slice: short, so that the destination sees no bursts.
SLICE_SECONDS = 0.25


class Paced(Middleware):
    """Hands a sink at most `rows_per_second` rows per second, over all channels.

    Args:
        rows_per_second: at least 1.
        whole_pages: batches are not cut. The files sink needs it: two slices of one page in two files would have one
            name, and the second file would wait for a checkpoint that the page itself still holds back.
    """

    def __init__(self, rows_per_second: int, *, whole_pages: bool = False) -> None:
        self._rows_per_second = rows_per_second
        self._slice_rows = sys.maxsize if whole_pages else max(1, int(rows_per_second * SLICE_SECONDS))
        self._rate: RateLimit | None = None
        #: Rows charged in advance for the next batch of a channel whose turn it is.
        self._charged: dict[ChannelId, int] = {}

    def __repr__(self) -> str:
        return f"Paced({self._rows_per_second} rows/s)"

    async def open(self) -> None:
        """Start the limit."""
        self._rate = RateLimit(self._rows_per_second)

    async def turn(self, channel_id: ChannelId) -> None:
        """See `Channels.turn`: the wait for the first slice, so that a channel that ends drops its next page alone."""
        assert self._rate is not None, "open() comes first"
        if channel_id not in self._charged:
            self._charged[channel_id] = await self._rate.ready()

    def ended(self, channel_id: ChannelId) -> None:
        """See `Middleware.ended`: a turn that no batch has used is another channel's."""
        charged = self._charged.pop(channel_id, None)
        if charged and self._rate is not None:
            self._rate.refund(charged)

    async def portions(self, batch: Batch, guard: Guard) -> AsyncGenerator[Batch]:
        """See `Middleware.portions`."""
        assert self._rate is not None, "open() comes first"
        head = batch.head or batch.records[0]
        for start in range(0, len(batch.records), self._slice_rows):
            records = batch.records[start : start + self._slice_rows]
            charged = self._charged.pop(batch.channel_id, None)
            if charged is None:
                charged = await self._rate.ready()
            self._rate.spend(len(records), charged)
            yield replace(batch, records=records, head=head)
