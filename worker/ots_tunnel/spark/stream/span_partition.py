"""What a task gets of a batch: the records of one channel, as a compressed page of the tunnel.

Spark copies a partition several times between the planner, the driver, the executor and its interpreter, and on a
cluster it goes over the network. A page repeats the names of columns with each cell, and lz4 makes a third to a sixth
of it: of a row of 426 bytes 67, and 149 where all values are random. Packing and unpacking take 0.3 CPU seconds for a
million such rows; what does not get smaller passes at 13 GB/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql.datasource import InputPartition

from ots_tunnel.model import ChannelId
from ots_tunnel.protocol.page import encode_page, read_page
from ots_tunnel.protocol.record import Record

#: Without the frame of lz4's files: its size is known here, and the page has a check sum in each record.
_CODEC: Final = "lz4_raw"


class SpanPartition(InputPartition):  # type: ignore[misc]  # pyspark has no types we follow
    """The records of one channel in a batch, pickled to a task.

    Args:
        packed: the page, compressed.
        size_bytes: of the page.
    """

    def __init__(self, channel_id: ChannelId, packed: bytes, size_bytes: int) -> None:
        super().__init__(channel_id)
        self._packed = packed
        self._size_bytes = size_bytes

    @classmethod
    def of(cls, channel_id: ChannelId, records: Sequence[Record]) -> SpanPartition:
        """Pack the records of a channel; they lose their previous values, which no row has."""
        import pyarrow as pa

        page = encode_page(records)
        return cls(channel_id, pa.compress(page, codec=_CODEC, asbytes=True), len(page))

    @property
    def channel_id(self) -> ChannelId:
        """The channel."""
        return ChannelId(self.value)

    def records(self) -> Sequence[Record]:
        """The records, in their order."""
        import pyarrow as pa

        page = pa.decompress(self._packed, decompressed_size=self._size_bytes, codec=_CODEC, asbytes=True)
        return read_page(page).records
