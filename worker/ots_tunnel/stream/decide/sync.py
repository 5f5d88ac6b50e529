"""The leases to create and to delete, from the shards that a stream lists.

Theory of operation
-------------------
    listed shard without a lease     create one: no owner, TRIM_HORIZON, with the shard's parents
    row that is half a lease         replace it by a new lease
    lease whose shard is not listed  delete it: the stream has dropped the shard

Parents come before children in the order of creation. A worker that sees the lease of a child then also sees those of
the parents, and does not take a parent for one that was dropped.

The leases have to be listed *before* the shards. Then every lease in the list was made for a shard that existed before
the shards were listed, and a shard that is missing among them is one that was dropped. In the other order a lease that
another worker makes for a new shard in between would be deleted.

A deleted lease that is not at SHARD_END is a loss: the stream dropped records that no worker had read. The plan names
these, for an alarm. Children of such a shard start. So is one that was seen unread, and that is gone together with its
shard: the vendor's library deletes the leases of dropped shards, read or not, and tells no one
(`holding.known_leases`).

A shard that gets its lease too late is a loss as well: the stream may have dropped its first records, while no worker
looked for new shards. That is where the shards were followed before what the stream still keeps, and none of the
shard's parents is listed any more: the stream keeps a closed shard for as long as it keeps the first record of its
children. The plan names these shards, too. Where the first lease is younger than that, the first sync is under way.

Example: retention 24 h. The last worker ends on Monday, when s1 is read to its end; s1 has split into s2 and s3, which
have no lease yet. On Wednesday s1 is not listed any more: what s2 and s3 got on Monday is gone.

A stream always has a shard, so an empty list is refused. It would delete every lease, and with them every checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from ots_tunnel.errors import CodecError
from ots_tunnel.stream.lease.lease import HalfLease, Lease
from ots_tunnel.stream.shards import Shard, ShardId


@dataclass(frozen=True, slots=True)
class Listed:
    """What a sync has seen, for who asks whether everything has a lease (`completion`).

    Args:
        ended: shards that were read to their end before the stream was asked, so that their children are in `shards`.
        shards: all that the stream listed.
    """

    ended: frozenset[ShardId] = frozenset()
    shards: frozenset[ShardId] = frozenset()


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """What a sync does.

    Args:
        create: new leases, parents first, each with the half row that it replaces.
        delete: leases of dropped shards.
        lost: those of them that were not read to the end.
        late: those of `create` whose shards may have lost records before.
        listed: what it is made of.
    """

    create: tuple[tuple[Lease, HalfLease | None], ...] = ()
    delete: tuple[Lease, ...] = ()
    lost: tuple[Lease, ...] = ()
    late: tuple[Lease, ...] = ()
    listed: Listed = field(default=Listed(), compare=False)

    @property
    def without_loss(self) -> SyncPlan:
        """The plan that loses nothing more: it leaves what is lost or late to a later sync, which finds it again.

        With a late shard nothing is deleted, because the leases of then are the evidence that it is late. Shards that
        come behind it wait as well: without its lease they would take it for one that was dropped.
        """
        waiting = {lease.shard_id for lease in self.late}
        create = []
        for lease, half in self.create:  # parents come first
            if lease.shard_id in waiting or lease.parents & waiting:
                waiting.add(lease.shard_id)
            else:
                create.append((lease, half))
        delete = () if self.late else tuple(lease for lease in self.delete if lease not in self.lost)
        return replace(self, create=tuple(create), delete=delete)


def plan_sync(
    stream_id: str,
    leases: Iterable[Lease],
    half: Iterable[HalfLease],
    shards: Iterable[Shard],
    kept_since: float | None = None,
) -> SyncPlan:
    """What to do so that every shard has a lease, and no other one.

    Args:
        leases, half: every row of the stream, listed before the shards.
        shards: all that the stream lists.
        kept_since: Unix seconds since which the stream has every record; None is unknown.

    Raises:
        CodecError: there are no shards, or one is its own ancestor.
    """
    listed = {shard.shard_id: shard for shard in shards}
    if not listed:
        raise CodecError(f"shards of stream {stream_id!r}: found none, a stream has one at least")
    owned = {lease.shard_id: lease for lease in leases}
    ended = frozenset(shard for shard, lease in owned.items() if lease.is_finished)
    halves = {each.shard_id: each for each in half}
    # A half row of a dropped shard becomes whole as well; the next sync deletes it, with the alarm.
    wanted = listed | {key: Shard(key) for key in halves if key not in listed}
    create = tuple(
        (Lease(stream_id, key, parents=wanted[key].parents), halves.get(key))
        for key in _parents_first(wanted.values())
        if key not in owned
    )
    delete = tuple(lease for key, lease in owned.items() if key not in listed)
    late = tuple(lease for lease, _ in create if lease.shard_id in listed and not lease.parents & listed.keys())
    return SyncPlan(
        create,
        delete,
        tuple(lease for lease in delete if not lease.is_finished),
        late if _were_followed_before(kept_since, owned.values()) else (),
        Listed(ended, frozenset(listed)),
    )


def _were_followed_before(kept_since: float | None, leases: Iterable[Lease]) -> bool:
    """Whether the first lease is older than what the stream keeps."""
    created = [lease.created_ms / 1000 for lease in leases if lease.created_ms is not None]
    return kept_since is not None and min(created, default=kept_since) < kept_since


def _parents_first(shards: Iterable[Shard]) -> list[ShardId]:
    graph = {shard.shard_id: sorted(shard.parents) for shard in shards}
    try:
        return [key for key in TopologicalSorter(graph).static_order() if key in graph]
    except CycleError as error:
        raise CodecError(f"shards of a stream: found {' -> '.join(error.args[1])}, none is its own ancestor") from error
