"""Whether the owner of a lease lives, from what this worker has seen of its counter.

Theory of operation
-------------------
No clock is shared. A worker remembers, for each lease, the time by its own clock at which it first saw the present
counter. An owner that lives moves the counter several times in the lease's duration. So a counter that has stood still
for longer than the duration, as this worker saw it, means that the owner has expired:

    seen before   counter    owner   stands still since
    yes           the same   any     the time that is known
    yes           another    any     now
    no                       any     now: a worker that starts waits for a full duration before it takes from others
    no            0          none    ever, if the row was created because there was none; otherwise now
    yes           0          none    the time that is known; if the row was written as a whole since, now
    any           more       none    ever: it was released

A lease that is not listed any more is forgotten.

A worker of the Java library that looks for new shards writes their leases whether there is one or not. Such a write can
be late, and take owner, counter and checkpoint from a lease in use. The owner learns it with its next renewal, and
restores its lease (`holding.held_lease`); until then it may write. So a row as the library writes it is free only when
it has stood still for the duration, also where this worker has never seen it with an owner.

Two rules keep the former owner's time and the next owner's apart, whatever the difference of their clocks:

- The owner counts from before it *sent* the renewal; it ends earlier than the duration, by the margin of its fence.
- Another worker counts from after it *received* the list. That is later than the renewal was carried out, which is
  later than it was sent.

So the owner has stopped writing when another worker takes the lease, as long as their clocks run equally fast up to the
share of the margin. The Java library takes the time of the renewal's answer, and its owners may end too late.

A lease without an owner is free for the Java library if it was never seen with one, and otherwise when it has stood
still for the duration.

Example, with a duration of 20 s: counter 7 is seen at 100 s and at 106 s, so it stands still since 100 s. At 112 s it
is 8. If it stays 8, the owner has expired at 132.1 s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ots_tunnel.stream.lease.lease import NO_WORKER, Lease
from ots_tunnel.stream.shards import ShardId


@dataclass(frozen=True, slots=True)
class Sighting:
    """A lease as last listed, and the local time, in seconds, since which its counter stands still."""

    lease: Lease
    since: float

    def is_expired(self, now: float, duration: float) -> bool:
        """Whether the lease has no owner that lives.

        Args:
            now: seconds of the local clock.
            duration: seconds, the same in all workers.
        """
        return now - self.since > duration


Sightings = Mapping[ShardId, Sighting]


def observe(known: Sightings, listed: Iterable[Lease], now: float) -> dict[ShardId, Sighting]:
    """What is known after a list.

    Args:
        now: seconds of the local clock, read after the list has arrived.
    """
    return {lease.shard_id: Sighting(lease, _stands_since(known.get(lease.shard_id), lease, now)) for lease in listed}


def _stands_since(known: Sighting | None, lease: Lease, now: float) -> float:
    if lease.owner == NO_WORKER:
        return _is_free_since(known, lease, now)
    if known is None or known.lease.counter != lease.counter or known.lease.owner == NO_WORKER:
        return now
    return known.since


def _is_free_since(known: Sighting | None, lease: Lease, now: float) -> float:
    if lease.counter > 0:
        return float("-inf")
    if known is None:
        return now if lease.may_hide_another else float("-inf")
    is_same_row = known.lease.owner == NO_WORKER and known.lease.created_ms == lease.created_ms
    return known.since if is_same_row else now
