"""What a worker remembers of the leases that it has listed: which were unread, and which shards are read to the end.

Theory of operation. A list shows what is there. Three things show only beside an earlier list:

    a lease that was unread and is gone        the vendor's library deletes the leases of dropped shards, read or not;
                                               the changes of one that was not read may be missing
    a lease that was finished and is unread    the library writes the lease of a new shard in any case, and such a
                                               write may be late: the shard was read, and reading it again would bring
                                               old values over those that its children have brought since. The row was
                                               written as a whole, at another time; whoever sets a checkpoint back on
                                               purpose changes the row that is there
    a lease that was finished, was gone, and   the same for a shard that the stream has dropped meanwhile: workers have
    is there again, unread                     deleted its lease. It was read, and nothing of it is missing

A row is also deleted to read its shard again. Then the stream lists the shard, and what was known of it is over. Where
a worker of this package has created the row since, it says that there was none (`Lease.created_if_missing`); nothing
else tells where a worker of the library has done so before this one could list that the row was missing.

Lists come every few seconds, by the rounds of the keeper and by each sync. What was seen longer ago than
REMEMBERED_SECONDS tells nothing of leases that are gone: others may have read them since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from ots_tunnel.stream.lease.lease import Lease
from ots_tunnel.stream.shards import ShardId

#: Seconds: many rounds of a keeper, and less than any retention.
REMEMBERED_SECONDS = 600.0


class KnownLeases:
    """The memory of one worker.

    Args:
        clock: monotonic seconds that count suspended time.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        #: Leases as they were when they were last seen, if unread, and when.
        self._unread: dict[ShardId, tuple[Lease, float]] = {}
        #: Leases of shards that are read to the end.
        self._read: dict[ShardId, Lease] = {}
        #: Shards that were read to the end, and whose leases were gone in a list, and when that was.
        self._gone: dict[ShardId, float] = {}

    def __repr__(self) -> str:
        return f"KnownLeases({len(self._unread)} unread, {len(self._read)} read)"

    def look(self, leases: Iterable[Lease]) -> None:
        """Remember what a list shows."""
        now, listed = self._clock(), {lease.shard_id: lease for lease in leases}
        # the library overwrites a row; one that was deleted, to read its shard again, is missing in a list
        gone = self._read.keys() - listed.keys()
        self._gone |= dict.fromkeys(gone, now)
        self._read = {shard: lease for shard, lease in self._read.items() if shard not in gone}
        for lease in listed.values():
            shard = lease.shard_id
            if lease.is_finished:
                self._read[shard] = lease
                self._unread.pop(shard, None)
            elif not self.is_read(lease):
                self._read.pop(shard, None)
                self._unread[shard] = lease, now
        since = now - REMEMBERED_SECONDS
        self._unread = {shard: seen for shard, seen in self._unread.items() if seen[1] >= since}
        self._gone = {shard: at for shard, at in self._gone.items() if at >= since}

    @property
    def unread(self) -> frozenset[ShardId]:
        """Shards whose leases were unread when they were last seen."""
        return frozenset(self._unread)

    def is_read(self, lease: Lease) -> bool:
        """Whether the shard was read to its end although its lease says otherwise."""
        read = self._read.get(lease.shard_id)
        if read is None:
            return False
        if lease.created_ms == read.created_ms:  # the same row, as it was before; set back, it keeps its counter
            return lease.counter < read.counter
        return not lease.created_if_missing

    def was_read(self, lease: Lease) -> bool:
        """Whether the shard, which the stream does not list any more, was read to its end before."""
        return lease.is_finished or self.is_read(lease) or lease.shard_id in self._gone

    def look_at_stream(self, shards: Set[ShardId]) -> None:
        """These the stream lists; a lease of them that was deleted was deleted on purpose."""
        self._gone = {shard: at for shard, at in self._gone.items() if shard not in shards}

    def vanished(self, there: Set[ShardId]) -> tuple[Lease, ...]:
        """The leases that were unread when they were last seen, and that are gone.

        Args:
            there: shards that have a lease, or that the stream lists.
        """
        # one that was read and dropped, and whose lease was written anew, is in `_gone`
        known = there | self._gone.keys()
        return tuple(lease for shard, (lease, _) in self._unread.items() if shard not in known)

    def forget(self, leases: Iterable[Lease]) -> None:
        """These are told, and are not told again."""
        for lease in leases:
            self._unread.pop(lease.shard_id, None)
