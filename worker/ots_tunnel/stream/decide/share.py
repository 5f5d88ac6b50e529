"""How many leases a worker should own.

Theory of operation. Every worker counts for itself, by one rule, and the rule is that of the Java library: two rules in
one table would take leases from each other without end.

    counted   leases whose owner lives and that no worker has asked for, by owner; finished shards count as others
              do; those without an owner do not, also where they are not free yet
    workers   the owners of counted leases, and this worker, even if it has none
    target    all leases / workers, rounded up
    need      target - leases of this worker that are counted

A worker without leases is not counted by the others until it has one: it is the one that acts.

Whenever a lease has expired, some worker has need > 0. With W owners, the counted leases are fewer than all leases; so
one of the owners has fewer than all / W, which is its target or less. Without any owner the target of each worker is
all.

Example: 7 leases, of which a owns 4 and b owns 3; c starts. For c there are 3 workers, the target is 3, its need 3. For
a there are still two, the target is 4, its need 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ots_tunnel.stream.decide.sightings import Sightings
from ots_tunnel.stream.lease.lease import NO_WORKER, WorkerId


@dataclass(frozen=True, slots=True)
class Share:
    """Leases by owner, and how many this worker should own."""

    counts: Mapping[WorkerId, int]
    target: int
    need: int


def share_of(me: WorkerId, sightings: Sightings, now: float, duration: float) -> Share:
    """The share of a worker; times as in `Sighting.is_expired`."""
    counts = Counter({me: 0})
    counts.update(
        sighting.lease.owner
        for sighting in sightings.values()
        if sighting.lease.stealer == NO_WORKER != sighting.lease.owner and not sighting.is_expired(now, duration)
    )
    target = -(-len(sightings) // len(counts))
    return Share(dict(counts), target, target - counts[me])
