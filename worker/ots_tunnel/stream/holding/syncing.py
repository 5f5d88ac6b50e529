"""Shards and leases are brought together: every shard has a lease, and no other one has."""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.decide.sync import SyncPlan, plan_sync


async def sync_shards(client: StreamClient, table: LeaseTable, stream_id: str) -> SyncPlan:
    """Create and delete leases as the stream lists its shards; returns what was done.

    `lost` names the deleted leases that were not read to their end, which is worth an alarm. A lease that its owner has
    just renewed is left for the next sync.

    Raises:
        ObjectNotExist: stream or table do not exist.
        CodecError: the stream lists no shard, or a row is not a lease.
        TunnelError: a call failed; the next sync does the rest.
    """
    listing = await table.list(stream_id)  # before the shards: see `decide.sync`
    plan = plan_sync(stream_id, listing.leases, listing.half, await client.shards(stream_id))
    for lease, half in plan.create:
        await table.create(lease, half)
    deleted = tuple([lease for lease in plan.delete if await table.delete(lease)])
    return replace(plan, delete=deleted, lost=tuple(lease for lease in deleted if not lease.is_finished))
