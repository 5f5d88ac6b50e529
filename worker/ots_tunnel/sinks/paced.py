"""A limit of rows written per second: batches go out in slices, one when the one before is paid for.

A sink that keeps records gets whole batches. Parts of one page in two files would have one name, and the second
file would wait for the checkpoint of a page that waits for it.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.rate import RateLimit
from ots_tunnel.sinks import Batch, Confirmation, Sink
from ots_tunnel.sinks.tally import Tally

#: A slice holds what may be written in this time, seconds: the destination sees no bursts.
SLICE_SECONDS = 0.25


class PacedSink:
    """Hands a sink at most so many rows per second, over all channels.

    Args:
        sink: opened and closed with this one.
        rows_per_second: at least 1.
        sliced: whether batches may be cut; only for a sink that confirms when `write` returns.
    """

    def __init__(self, sink: Sink, rows_per_second: int, *, sliced: bool = True) -> None:
        self._sink = sink
        self._rows_per_second = rows_per_second
        self._slice_rows = max(1, int(rows_per_second * SLICE_SECONDS)) if sliced else sys.maxsize
        self._rate: RateLimit | None = None

    def __repr__(self) -> str:
        return f"PacedSink({self._sink!r}, {self._rows_per_second} rows/s)"

    async def open(self) -> None:
        """Open the sink."""
        self._rate = RateLimit(self._rows_per_second)
        await self._sink.open()

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """See `Sink.begin`."""
        await self._sink.begin(channel_id, channel_type, start)

    async def write(self, batch: Batch, guard: Guard) -> Confirmation | None:
        """See `Sink.write`."""
        assert self._rate is not None, "open() comes first"
        confirmation: Confirmation | None = None
        head = batch.head or batch.records[0]
        for start in range(0, len(batch.records), self._slice_rows):
            records = batch.records[start : start + self._slice_rows]
            charged = await self._rate.ready()
            self._rate.spend(len(records), charged)
            confirmation = await self._sink.write(replace(batch, records=records, head=head), guard)
        return confirmation

    def checkpointed(self, channel_id: ChannelId, token: Token) -> None:
        """See `Sink.checkpointed`."""
        self._sink.checkpointed(channel_id, token)

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """See `Sink.end`."""
        await self._sink.end(channel_id, abandoned=abandoned)

    async def close(self) -> None:
        """Close the sink."""
        await self._sink.close()

    def tally(self) -> Tally:
        """See `Sink.tally`."""
        return self._sink.tally()
