"""A sink behind a transform: it sees what is left of every batch."""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel.fence import Guard
from ots_tunnel.sinks import Batch, Confirmation, Sink
from ots_tunnel.sinks.middleware.base import WrappingSink
from ots_tunnel.sinks.middleware.transform import Omitted, Transform
from ots_tunnel.sinks.tally import Tally


class TransformingSink(WrappingSink):
    """Hands a sink what a transform leaves of the records."""

    def __init__(self, sink: Sink, transform: Transform) -> None:
        super().__init__(sink)
        self._transform = transform
        self.omitted = Omitted()

    async def write(self, batch: Batch, guard: Guard) -> Confirmation | None:
        """See `Sink.write`; a batch of which nothing is left counts as stored.

        Raises:
            CodecError: a record is malformed.
        """
        records = self._transform.apply(batch.records, self.omitted)
        return await self._sink.write(replace(batch, records=records), guard) if records else None

    def tally(self) -> Tally:
        """See `Sink.tally`."""
        mine = Tally(records_filtered=self.omitted.records, cells_left_out=self.omitted.cells)
        return super().tally() + mine
