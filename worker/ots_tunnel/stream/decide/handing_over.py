"""The leases that a worker gives away: to a thief, or when it stops.

Theory of operation. A lease changes its owner in two steps, so that no record is read twice:

    thief                     owner                                     thief
    steal: stealer = thief    sees it in the next list, finishes its    sees itself as owner and stealer:
    (counter as it was)       batch, stores the checkpoint, stops;      take: counter + 1, no stealer
                              transfer: owner = thief, counter + 1

A worker that stops does the owner's part unasked. It divides its leases over the workers that own a lease which is
renewed, to the one with fewest first; a worker that was only handed a lease is not one of them: it may be gone.

    the share of a worker of the Java library    gets the state of a finished transfer, so that it takes it in its next
                                                 round; a released lease it takes only after the duration
    the share of a worker of this package        is released, and any of them takes it at once: the one that it was
                                                 meant for may be stopping at this moment, or have died
    there is no other worker                     is released

A worker that has asked for a lease gets it, or, if it is one of this package, any of them does. One that owns nothing
is taken for one of this package where all owners are.

The owner believes a list that is not older than its own take, which cleared every earlier mark: one with the counter of
the take or a higher one. (The Java library asks for the counter that it knows at that moment. An owner that stores a
checkpoint every few milliseconds is ahead of its lists there, and finds the mark only by chance.)

A worker may own leases that it does not hold: its take was not answered, or it starts under the id of an earlier
worker. It takes those (`decide.taking`), and hands over at once those that were asked for: there is no batch to finish.
(The Java library keeps such a lease without reading it.) This needs an id that no other running worker has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set

from ots_tunnel.stream.decide.sightings import Sightings
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.change import Change
from ots_tunnel.stream.lease.lease import NO_WORKER, Lease, WorkerId
from ots_tunnel.stream.shards import ShardId


def is_asked_for(taken: Lease, listed: Lease) -> bool:
    """Whether another worker has asked for a lease.

    Args:
        taken: as its owner took it.
        listed: as it was listed.
    """
    if listed.owner != taken.owner or listed.counter < taken.counter:
        return False
    return listed.stealer not in (NO_WORKER, taken.owner)


def give_away(me: WorkerId, mine: Iterable[Lease], sightings: Sightings, now: float, duration: float) -> list[Change]:
    """The changes by which a worker that has stopped leaves its leases; times as in `Sighting.is_expired`."""
    loads = Counter(
        each.lease.owner
        for each in sightings.values()
        if each.lease.owner not in (NO_WORKER, me)
        and not each.lease.is_handed_over
        and not each.is_expired(now, duration)
    )
    owned = [each.lease for each in sightings.values() if each.lease.owner != NO_WORKER]
    ours = {lease.owner for lease in owned if lease.takes_released}
    others = {lease.owner for lease in owned if not lease.is_handed_over} - ours
    changes = []
    for lease in sorted(mine, key=lambda lease: lease.shard_id):
        if lease.stealer not in (NO_WORKER, me):
            heir = lease.stealer
            is_ours = heir in ours or not others
            changes.append(change.release(lease) if is_ours else change.transfer(lease))
        elif loads:
            heir = min(loads, key=lambda worker: (loads[worker], worker))
            changes.append(change.release(lease) if heir in ours else change.hand_over(lease, heir))
        else:
            changes.append(change.release(lease))
            continue
        if heir in loads:
            loads[heir] += 1
    return changes


def to_pass_on(me: WorkerId, listed: Iterable[Lease], held: Set[ShardId]) -> list[Change]:
    """The transfers of leases that a worker owns without holding them, and that were asked for."""
    return [
        change.transfer(lease)
        for lease in listed
        if lease.owner == me and lease.stealer not in (NO_WORKER, me) and lease.shard_id not in held
    ]
