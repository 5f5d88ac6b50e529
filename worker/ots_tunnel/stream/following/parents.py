"""Whether the parents of a shard are read, from the list of leases and from the rows that it lacks."""

from __future__ import annotations

from collections.abc import Mapping

from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.decide.starting import to_confirm, waits_for
from ots_tunnel.stream.lease.lease import HalfLease, Lease
from ots_tunnel.stream.shards import ShardId


async def parents_are_read(table: LeaseTable, lease: Lease, leases: Mapping[ShardId, Lease]) -> bool:
    """Whether every parent is at SHARD_END, or has no lease any more.

    Args:
        leases: every lease of the stream as last listed; a parent that it lacks is looked up by itself.

    Raises:
        CodecError: the row of a parent is no lease. TunnelError: a call failed.
    """
    if waits_for(lease, leases):
        return False
    for parent in sorted(to_confirm(lease, leases)):
        found = await table.get(lease.stream_id, parent)
        if isinstance(found, HalfLease) or (found is not None and not found.is_finished):
            return False
    return True
