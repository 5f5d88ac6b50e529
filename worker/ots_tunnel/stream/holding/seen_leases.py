"""What a worker has seen of the leases: the last list, since when each counter stands still, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from ots_tunnel.errors import ConfigError, TunnelError
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.decide.sightings import Sightings, observe
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.holding.known_leases import KnownLeases
from ots_tunnel.stream.lease.lease import NO_WORKER, Lease, WorkerId
from ots_tunnel.stream.shards import ShardId


class SeenLeases:
    """The leases of one stream as one worker sees them.

    Args:
        clock: monotonic seconds that count suspended time.
        doubt: D, seconds for which the last writes of an earlier process of this id may still take effect.
        report: called with every row that is no lease, once.
    """

    def __init__(
        self,
        table: LeaseTable,
        stream_id: str,
        me: WorkerId,
        clock: Callable[[], float],
        doubt: float,
        report: Callable[[TunnelError], None],
    ) -> None:
        self.sightings: Sightings = {}
        #: What is remembered of leases that look otherwise now, or are gone.
        self.known = KnownLeases(clock)
        #: When the last answered list was asked for, by `clock`.
        self.answered = float("-inf")
        self._table = table
        self._stream_id = stream_id
        self._me = me
        self._clock = clock
        self._doubt = doubt
        self._report = report
        #: The counter with which this worker took or restored each lease that it holds, and when it did, by the
        #: service's clock.
        self._owned_ms: dict[ShardId, tuple[int, int | None]] = {}
        #: Leases that another worker has changed under this one, with this one's last counter and that time.
        self._refused: dict[ShardId, tuple[int, int | None]] = {}
        #: Shards whose leases an earlier process of this id has left, until it no longer matters; None before a list.
        self._inherited: frozenset[ShardId] | None = None
        self._inherited_until = float("-inf")
        self._reported: set[str] = set()

    def __repr__(self) -> str:
        return f"SeenLeases({len(self.sightings)})"

    @property
    def leases(self) -> Mapping[ShardId, Lease]:
        """Every lease as last listed."""
        return {shard: sighting.lease for shard, sighting in self.sightings.items()}

    async def list(self, held: Mapping[ShardId, HeldLease]) -> None:
        """Look at the table.

        Args:
            held: the leases that this worker holds.
        """
        asked_at = self._clock()
        listing = await self._table.list(self._stream_id)
        self.sightings = observe(self.sightings, listing.leases, self._clock())
        self.known.look(listing.leases)
        self.answered = max(self.answered, asked_at)
        for shard in held.keys() & self.sightings.keys():
            lease, taken = self.sightings[shard].lease, held[shard].taken
            is_known = shard in self._owned_ms and self._owned_ms[shard][0] == taken.counter
            if not is_known and lease.owner == self._me and lease.counter >= taken.counter:
                self._owned_ms[shard] = taken.counter, lease.owned_ms
        if self._inherited is None:
            # What was handed to this worker has no writes before it.
            mine = (lease for lease in listing.leases if lease.owner == self._me and not lease.is_handed_over)
            self._inherited = frozenset(lease.shard_id for lease in mine)
            self._inherited_until = self._clock() + self._doubt
        for error in listing.unreadable:
            if str(error) not in self._reported:
                self._reported.add(str(error))
                self._report(error)

    def is_inherited(self, lease: Lease) -> bool:
        """Whether an earlier process of this id has left the lease, and its last writes may still take effect."""
        is_left = lease.owner == self._me and lease.shard_id in (self._inherited or ())
        return is_left and self._clock() < self._inherited_until

    def lost(self, held: HeldLease) -> None:
        """A lease is not held any more."""
        counter, owned_ms = self._owned_ms.pop(held.shard_id, (held.taken.counter, None))
        owned_ms = owned_ms if counter == held.taken.counter else None
        if held.was_refused:  # and not given away
            self._refused[held.shard_id] = held.lease.counter, owned_ms

    def check_twin(self, held: Set[ShardId]) -> None:
        """Find out whether another worker runs under this id: it has taken a lease, which is still 'ours'.

        A take writes the owner. A counter that moves alone is that of a former owner which has not noticed: one of the
        Java library, for example, whose lease another one has written anew, so that counters met again.

        Raises:
            ConfigError: one does.
        """
        for shard, (counter, owned_ms) in self._refused.items():
            sighting = self.sightings.get(shard)
            if sighting is None or shard in held or sighting.lease.counter <= counter:
                continue
            is_taken = owned_ms is not None and sighting.lease.owned_ms != owned_ms
            if is_taken and (sighting.lease.owner, sighting.lease.stealer) == (self._me, NO_WORKER):
                raise ConfigError(
                    f"worker id: found {self._me!r}, under which another worker of table {self._table.name!r} runs as "
                    f"well: it has taken shard {shard}; allowed is an id that no other running worker has"
                )
        self._refused.clear()
