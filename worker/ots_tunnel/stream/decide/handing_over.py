"""The leases that a worker gives away: to a thief, when it stops, or as it starts again.

Theory of operation. A lease changes its owner in two steps, so that no record is read twice:

    thief                     owner                                     thief
    steal: stealer = thief    sees it in the next list, finishes its    sees itself as owner and stealer:
    (counter as it was)       batch, stores the checkpoint, stops;      take: counter + 1, no stealer
                              transfer: owner = thief, counter + 1

A worker that stops does the owner's part unasked: its leases get the state of a finished transfer, each with an heir.
Heirs are workers that own a lease that is renewed, the one with fewest first. A worker that was only handed a lease is
not one: it may be gone. Without an heir the lease is released.

The owner believes a list only if it is not older than what it knows: a list with a lower counter may show a mark that
its own take has cleared since. One with a higher counter is newer, for example when a renewal is on its way.

A worker that starts under the id of an earlier one owns leases already. It takes them at once, but hands over those
that were asked for: it has no batch to finish. (The Java library keeps such a lease without reading it.) This needs an
id that no other running worker has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ots_tunnel.stream.decide.sightings import Sightings
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.change import Change
from ots_tunnel.stream.lease.lease import NO_WORKER, Lease, WorkerId


def is_asked_for(held: Lease, listed: Lease) -> bool:
    """Whether another worker has asked for a lease.

    Args:
        held: as its owner knows it.
        listed: as it was listed.
    """
    if listed.owner != held.owner or listed.counter < held.counter:
        return False
    return listed.stealer not in (NO_WORKER, held.owner)


def give_away(me: WorkerId, mine: Iterable[Lease], sightings: Sightings, now: float, duration: float) -> list[Change]:
    """The changes by which a worker that has stopped leaves its leases; times as in `Sighting.is_expired`."""
    loads = Counter(
        each.lease.owner
        for each in sightings.values()
        if each.lease.owner != me and not each.lease.is_handed_over and not each.is_expired(now, duration)
    )
    changes = []
    for lease in sorted(mine, key=lambda lease: lease.shard_id):
        if lease.stealer not in (NO_WORKER, me):
            heir = lease.stealer
            changes.append(change.transfer(lease))
        elif loads:
            heir = min(loads, key=lambda worker: (loads[worker], worker))
            changes.append(change.hand_over(lease, heir))
        else:
            changes.append(change.release(lease))
            continue
        if heir in loads:
            loads[heir] += 1
    return changes


def resume(me: WorkerId, listed: Iterable[Lease]) -> list[Change]:
    """The first changes of a worker that starts: what its id owns is taken, or handed over where it was asked for."""
    return [
        change.take(lease, me) if lease.stealer in (NO_WORKER, me) else change.transfer(lease)
        for lease in listed
        if lease.owner == me
    ]
