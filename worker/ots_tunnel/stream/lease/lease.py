"""A lease as a value: who reads a shard, how far it is read, and whether the reader lives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NewType

from ots_tunnel.stream.shards import ShardId

#: Name of one running worker, unique over all workers of a table in every language; empty where there is none.
WorkerId = NewType("WorkerId", str)
#: Where a shard is read on: an iterator, or one of the two words.
Position = NewType("Position", str)

NO_WORKER: Final = WorkerId("")
#: The oldest record that the stream keeps of a shard.
TRIM_HORIZON: Final = Position("TRIM_HORIZON")
#: Behind the last record of a closed shard: its children may be read.
SHARD_END: Final = Position("SHARD_END")


@dataclass(frozen=True, slots=True)
class Lease:
    """The lease of one shard.

    Args:
        counter: moves by 1 with every change except a steal; never falls.
        owner: reads the shard; NO_WORKER before the first one, or after a release.
        stealer: a worker that the owner is to hand the lease to. It equals the owner where that has happened and the
            new owner has not taken it yet.
        checkpoint: position of the next record to read. It may hold a primary key and is not printed.
        parents: shards that have to be read before this one.
        created_ms, owned_ms: when the row was written as a whole, and the owner last, by the service's clock, Unix
            milliseconds; None if unknown.
        created_if_missing: whether the row was written because there was none. Of a row of the Java library that is
            not known: it may stand in place of one that had an owner and a checkpoint.
        takes_released: whether the owner is a worker that takes released leases at once, as those of this package do.
    """

    stream_id: str
    shard_id: ShardId
    counter: int = 0
    owner: WorkerId = NO_WORKER
    stealer: WorkerId = NO_WORKER
    checkpoint: Position = field(default=TRIM_HORIZON, repr=False)
    parents: frozenset[ShardId] = frozenset()
    created_ms: int | None = field(default=None, repr=False, compare=False)
    owned_ms: int | None = field(default=None, repr=False, compare=False)
    created_if_missing: bool = field(default=False, repr=False, compare=False)
    takes_released: bool = field(default=False, repr=False, compare=False)

    @property
    def is_finished(self) -> bool:
        """Whether the shard was read to its end."""
        return self.checkpoint == SHARD_END

    @property
    def may_hide_another(self) -> bool:
        """Whether the row is as the Java library writes it for a new shard, which it may do over a lease in use."""
        return (self.counter, self.owner) == (0, NO_WORKER) and not self.created_if_missing

    @property
    def is_handed_over(self) -> bool:
        """Whether the owner was given the lease by the one before, and has not taken it yet."""
        return self.owner != NO_WORKER and self.owner == self.stealer


@dataclass(frozen=True, slots=True)
class HalfLease:
    """A row that lacks attributes: no worker may use it, the Java library ignores it, and a lease replaces it."""

    stream_id: str
    shard_id: ShardId
    missing: tuple[str, ...]
