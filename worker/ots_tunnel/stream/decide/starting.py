"""Whether a shard may be read: the records of its parents come first.

Theory of operation. After a split or a merge the changes of a key go on in a child. In order per key means that every
parent is read to its end before a child begins: its lease is at SHARD_END, or there is none, because the stream has
dropped the shard. After a merge there are two parents. A parent whose row is only half a lease is not absent.

This asks for a complete list of leases, and for leases of parents that are created before those of their children.
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
