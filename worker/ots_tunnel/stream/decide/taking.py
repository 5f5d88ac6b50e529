"""The leases that a worker takes, and the one that it asks another worker for.

Theory of operation
-------------------
A round takes, in this order:

1. every lease that this worker owns without holding it: it was handed over (owner and stealer are this worker), or a
   take was not answered, or the worker has started again. No other worker looks at it until it expires. The Java
   library stops at its need, but takes one at least;
2. leases without an owner that lives, in random order, as many as the need (`decide.share`) is larger.

If the need is larger still, the round asks for one lease, of the worker with most of them. It does not, if that worker
has fewer than the target, or has just the target and this worker lacks only one: the move would exchange the two.

What is on its way counts: a lease that this worker has asked for, and that its owner has not handed over yet, lowers
the need. The Java library forgets these, and asks every round while an owner finishes a long batch; it then gets too
many, and the owner takes some back.

So the moves end. Each one goes from an owner to a worker that has at least two fewer, which lowers the sum of squares.
Thieves that act at one time may take too many from one owner; that owner then has a need of two or more, and takes from
those at the target or above, one after the other, until its need is one.

Example: 6 leases, a has 4, b has 2. The target is 3: b needs one and a has 4, so b asks for one of a's. With 5 leases,
a 3 and b 2, the target is 3, b needs one and a has just the target: nothing moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from ots_tunnel.stream.decide.share import share_of
from ots_tunnel.stream.decide.sightings import Sightings
from ots_tunnel.stream.lease.lease import NO_WORKER, Lease, WorkerId
from ots_tunnel.stream.shards import ShardId

#: Brings leases into a random order, so that workers that act at one time seldom choose the same.
Shuffle = Callable[[Sequence[Lease]], Sequence[Lease]]


def to_take(
    me: WorkerId, sightings: Sightings, held: Set[ShardId], now: float, duration: float, shuffle: Shuffle
) -> tuple[Lease, ...]:
    """The leases to take in this round; times as in `Sighting.is_expired`.

    Args:
        held: shards whose leases this worker holds already.
    """
    loose = [each for each in sightings.values() if each.lease.shard_id not in held]
    own = [each for each in loose if each.lease.owner == me and each.lease.stealer in (NO_WORKER, me)]
    expired = [each.lease for each in loose if each.is_expired(now, duration) and each.lease.owner != me]
    uncounted = sum(is_given(me, each.lease) or each.is_expired(now, duration) for each in own)
    need = share_of(me, sightings, now, duration).need - _on_the_way(me, sightings, now, duration) - uncounted
    return *(each.lease for each in own), *shuffle(expired)[: max(need, 0)]


def to_steal(
    me: WorkerId, sightings: Sightings, taken: int, now: float, duration: float, shuffle: Shuffle
) -> Lease | None:
    """The lease to ask for in this round, if any; times as in `Sighting.is_expired`.

    Args:
        taken: how many leases this round has taken.
    """
    share = share_of(me, sightings, now, duration)
    need = share.need - _on_the_way(me, sightings, now, duration) - taken
    others = {owner: count for owner, count in share.counts.items() if owner != me}
    if need <= 0 or not others:
        return None
    busiest = max(others, key=lambda owner: (others[owner], owner))
    most = others[busiest]
    if most < share.target or (most == share.target and need == 1):
        return None
    candidates = [
        each.lease
        for each in sightings.values()
        if each.lease.owner == busiest and each.lease.stealer == NO_WORKER and not each.is_expired(now, duration)
    ]
    return shuffle(candidates)[0]


def is_given(me: WorkerId, lease: Lease) -> bool:
    """Whether a lease was handed to this worker, which has not taken it yet."""
    return lease.is_handed_over and lease.owner == me


def _on_the_way(me: WorkerId, sightings: Sightings, now: float, duration: float) -> int:
    """How many leases this worker has asked for whose owners live and have not handed them over yet."""
    return sum(
        each.lease.stealer == me != each.lease.owner and not each.is_expired(now, duration)
        for each in sightings.values()
    )
