"""Whether a shard may be read: the records of its parents come first.

Theory of operation. After a split or a merge the changes of a key go on in a child. In order per key means that every
parent is read to its end before a child begins: its lease is at SHARD_END, or there is none, because the stream has
dropped the shard. After a merge there are two parents. A parent whose row is only half a lease is not absent.

Leases of parents are created before those of their children, so a worker that sees the lease of a child finds those of
the parents. But a list of many leases is not of one moment: its first page may be older than a parent, and its last
page may have the child. So a parent that the list lacks is read once more by itself before it passes for dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ots_tunnel.stream.lease.lease import HalfLease, Lease
from ots_tunnel.stream.shards import ShardId


def waits_for(lease: Lease, leases: Mapping[ShardId, Lease], half: Iterable[HalfLease] = ()) -> frozenset[ShardId]:
    """The parents that have to be read before a shard; none if it may start.

    Args:
        leases, half: every lease of the stream.
    """
    unfinished = {parent for parent in lease.parents if parent in leases and not leases[parent].is_finished}
    return frozenset(unfinished | (lease.parents & {each.shard_id for each in half}))


def to_confirm(lease: Lease, leases: Mapping[ShardId, Lease], half: Iterable[HalfLease] = ()) -> frozenset[ShardId]:
    """The parents that the list lacks: each has to be read by itself before the shard may start."""
    return lease.parents - leases.keys() - {each.shard_id for each in half}
