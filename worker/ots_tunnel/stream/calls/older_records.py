"""Whether a start leaves something out: records from before a time that the stream keeps."""

from __future__ import annotations

from ots_tunnel.errors import TunnelExpired
from ots_tunnel.stream.calls.client import StreamClient


async def keeps_older(client: StreamClient, stream_id: str, time_us: int) -> bool:
    """Whether a shard has a record that was committed before a time, Unix microseconds; two calls for a shard.

    Raises:
        TunnelError: a call failed.
    """
    for shard in await client.shards(stream_id):
        try:
            page = await client.read(await client.iterator(stream_id, shard.shard_id), limit=1)
        except TunnelExpired:
            return True  # the oldest record was dropped between the two calls
        for record in page.records:
            sequence = record.sequence
            if sequence is not None and sequence.timestamp_us < time_us:
                return True
    return False
