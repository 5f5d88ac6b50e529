"""A sink behind a transform: it sees what is left of every batch."""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.sinks import Batch, Confirmation, Sink
from ots_tunnel.sinks.tally import Tally
from ots_tunnel.transform import Omitted, Transform


class TransformingSink:
    """Hands a sink what a transform leaves of the records.

    Args:
        sink: opened and closed with this one.
    """

    def __init__(self, sink: Sink, transform: Transform) -> None:
        self._sink = sink
        self._transform = transform
        self.omitted = Omitted()

    def __repr__(self) -> str:
        return f"TransformingSink({self._sink!r})"

    async def open(self) -> None:
        """Open the sink."""
        await self._sink.open()

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """See `Sink.begin`."""
        await self._sink.begin(channel_id, channel_type, start)

    async def write(self, batch: Batch, guard: Guard) -> Confirmation | None:
        """See `Sink.write`; a batch of which nothing is left counts as stored.

        Raises:
            CodecError: a record is malformed.
        """
        records = self._transform.apply(batch.records, self.omitted)
        return await self._sink.write(replace(batch, records=records), guard) if records else None

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
        mine = Tally(records_filtered=self.omitted.records, cells_left_out=self.omitted.cells)
        return self._sink.tally() + mine
