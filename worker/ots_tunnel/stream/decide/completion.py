"""Whether a stream is read up to an end time, as one of its workers sees it.

Theory of operation. A shard stays open, so nothing at the service tells that it is done. A worker that has read one up
to the end time holds its lease and reads no further (docs/architecture.md 3.4). For the worker the stream is complete
where each lease is one of these:

    at SHARD_END                           the shard was read to its end, which came before the end time
    held here, and at the end time         its further records are later
    of a shard that waits for a parent     either that is read on, and then its child is; or it has stopped at the end
                                           time, and then all that its child holds is later
    owned by another worker                that worker tells

A shard that was read to its end may have children without a lease as yet. So a sync has to come first that began behind
that end, and each shard that it has found has to have its lease here.

The last case of the table makes the answer one of this worker alone: who wants to know about the stream asks the others
as well, and looks for leases whose owners have expired.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from ots_tunnel.stream.decide.starting import waits_for
from ots_tunnel.stream.decide.sync import Listed
from ots_tunnel.stream.lease.lease import NO_WORKER, Lease, WorkerId
from ots_tunnel.stream.shards import ShardId


def own_share_is_done(
    me: WorkerId, leases: Mapping[ShardId, Lease], held: Set[ShardId], stopped: Set[ShardId], listed: Listed
) -> bool:
    """Whether a worker has nothing left to read before the end time.

    Args:
        leases: every lease of the stream that the worker knows.
        held: shards whose leases it holds.
        stopped: those of them that are read up to the end time.
        listed: what the last sync has seen.
    """
    finished = {shard for shard, lease in leases.items() if lease.is_finished}
    if not (finished <= listed.ended and listed.shards <= leases.keys()):
        return False
    unread = [lease for shard, lease in leases.items() if not lease.is_finished and shard not in stopped]
    return bool(leases) and all(
        bool(waits_for(lease, leases)) or (lease.shard_id not in held and lease.owner not in (NO_WORKER, me))
        for lease in unread
    )
