"""The records of a page in slices, so that the event loop runs in between.

A page may hold 60,000 records of one small cell each, or cells by the hundred thousand. Whatever costs time per record
or per cell goes through it in slices of at most `SLICE_RECORDS` records and about `SLICE_BYTES` bytes: bytes bound the
cells, since no cell is shorter than 11 bytes. So a page blocks neither heartbeats nor other channels, and what is made
of the records is there for one slice at a time. A page of usual size is one slice, without any delay.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence

from ots_tunnel.protocol.page import total_size
from ots_tunnel.protocol.record import Record

#: The most of a slice. The slowest work on a record, JSON of one cell in Python, takes 20 microseconds on a usual
#: machine, and 3 on each further cell: about 5 ms per slice. A larger record is a slice of its own.
SLICE_RECORDS = 256
SLICE_BYTES = 32_768


def slices(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Cut records into slices, in their order; none for no records."""
    if len(records) <= SLICE_RECORDS and total_size(records) <= SLICE_BYTES:
        if records:
            yield records
        return
    start = size = 0
    for index, record in enumerate(records):
        if index > start and (index - start == SLICE_RECORDS or size + record.size > SLICE_BYTES):
            yield records[start:index]
            start, size = index, 0
        size += record.size
    yield records[start:]


def end_of_slice(records: Sequence[Record], first: int) -> int:
    """The place behind the slice that begins at a place."""
    end, size = first + 1, records[first].size
    while end < len(records) and end - first < SLICE_RECORDS:
        size += records[end].size
        if size > SLICE_BYTES:
            break
        end += 1
    return end


class Turns:
    """Turns of the channels at one sink: one slice at most runs in one round of the event loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()  # wakes in the order of arrival

    async def next(self) -> None:
        """Let the event loop run, and wait for those who came before."""
        async with self._turn:
            await asyncio.sleep(0)

    async def through(self, records: Sequence[Record]) -> AsyncGenerator[Sequence[Record]]:
        """The slices of records, one per turn."""
        first = True
        for part in slices(records):
            if not first:
                await self.next()
            first = False
            yield part
