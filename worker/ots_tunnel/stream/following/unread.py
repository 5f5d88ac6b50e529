"""Whether the stream has dropped records of a shard before its first page was read.

Theory of operation. A lease that nobody has read with stands at TRIM_HORIZON, which moves: it goes on behind what was
dropped, without an error. A lease that is older than what the stream keeps may have stood there beside records that
are gone. That is so where a processor could not begin for days, where every worker ended before its first page, and
with leases that the vendor's library has made. The stream keeps a closed shard for as long as it keeps the first record
of its children: where a parent is listed, nothing is gone.

Example: retention 24 h. A shard's lease was made on Monday, and its first page is read on Thursday. Changes from Monday
to Wednesday may be missing.
"""

from __future__ import annotations

from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.lease.lease import Lease

#: Seconds: no stream keeps its records for less.
SHORTEST_RETENTION = 3600.0


async def dropped_unread(client: StreamClient, lease: Lease, answered: float) -> Gap | None:
    """The changes that may be missing before the first page of a lease at TRIM_HORIZON; None where none are.

    Args:
        lease: as it was read.
        answered: time of the page, Unix seconds: the stream is asked for only where the lease is old enough.

    Raises:
        ObjectNotExist: the stream does not exist. TunnelError: a call failed.
    """
    if lease.created_ms is None or answered - lease.created_ms / 1000 < SHORTEST_RETENTION:
        return None
    found = await client.describe(lease.stream_id)
    if found.service_time is None or lease.parents & {shard.shard_id for shard in found.shards}:
        return None
    created, kept_since = lease.created_ms / 1000, found.service_time - found.retention
    return Gap(created, kept_since) if created < kept_since else None
