"""A limit of rows written per second: batches go out in slices, one when the one before is paid for.

A sink that keeps records gets whole batches. Parts of one page in two files would have one name, and the second
file would wait for the checkpoint of a page that waits for it.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from ots_tunnel.fence import Guard
from ots_tunnel.rate import RateLimit
from ots_tunnel.sinks import Batch, Confirmation, Sink
from ots_tunnel.sinks.middleware.base import WrappingSink

#: A slice holds what may be written in this time, seconds: the destination sees no bursts.
SLICE_SECONDS = 0.25


class RateLimitedSink(WrappingSink):
    """Hands a sink at most so many rows per second, over all channels.

    Args:
        rows_per_second: at least 1.
        whole_pages: batches are not cut.
    """

    def __init__(self, sink: Sink, rows_per_second: int, *, whole_pages: bool = False) -> None:
        super().__init__(sink)
        self._rows_per_second = rows_per_second
        self._slice_rows = sys.maxsize if whole_pages else max(1, int(rows_per_second * SLICE_SECONDS))
        self._rate: RateLimit | None = None

    def __repr__(self) -> str:
        return f"RateLimitedSink({self._sink!r}, {self._rows_per_second} rows/s)"

    async def open(self) -> None:
        """Open the sink."""
        self._rate = RateLimit(self._rows_per_second)
        await super().open()

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
