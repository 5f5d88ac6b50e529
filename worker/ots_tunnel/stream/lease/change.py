"""What workers do to a lease: each change, the state in which it may be made, and what it writes.

Theory of operation
-------------------
A change is made by one conditional write, so of two workers that saw the same lease one succeeds. The vendor's Java
library makes the first five; the last three are changes that its workers understand:

    change       writes                                   where                             counter
    RENEW        counter                                  counter and owner are as seen     + 1
    TAKE         counter, owner = me, stealer = none      counter and owner are as seen,    + 1
                                                          and of a new row how it came
    STEAL        stealer = me                             owner is as seen, no stealer
    TRANSFER     counter, owner = stealer                 counter and owner are as seen     + 1
    CHECKPOINT   counter, checkpoint                      counter and owner are as seen     + 1
    HAND_OVER    counter, owner = stealer = heir          counter and owner are as seen     + 1
    RELEASE      counter, owner = none, stealer = none    counter and owner are as seen     + 1
    RESTORE      counter, owner = me, stealer = none,     counter and owner are as seen     + 1 of the lost one
                 checkpoint

The library asks for the counter alone, and its workers also write the lease of a new shard whether there is one or not.
Such a write can be late and set a lease that is held back to counter 0 without an owner. Another worker then takes it,
and when its counter comes to where that of the former owner stands, the counter alone would let both of them change the
lease. The owner tells them apart: the former one's next renewal is refused. Then the former owner reads the row, and
restores in it what was lost, as long as no worker has taken it.

A steal leaves the counter, so that the owner's next renewal succeeds and finds it. A transfer leaves the stealer: owner
and stealer are one, and that is how the thief sees that the lease is its own before it has taken it. A hand-over makes
the same state for a worker that did not ask. A released lease has no owner; workers of this package take it at once,
those of the Java library when its counter has stood still for the lease's duration.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from ots_tunnel.stream.lease.lease import NO_WORKER, Lease, Position, WorkerId
from ots_tunnel.stream.lease.row import CHECKPOINT, COUNTER, OWNER, STEALER


class Kind(enum.Enum):
    """Kind of a change."""

    RENEW = "renew"
    TAKE = "take"
    STEAL = "steal"
    TRANSFER = "transfer"
    CHECKPOINT = "checkpoint"
    HAND_OVER = "hand over"
    RELEASE = "release"
    RESTORE = "restore"


#: Attributes that a change writes, in the library's order.
WRITES: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.RENEW: (COUNTER,),
    Kind.TAKE: (COUNTER, OWNER, STEALER),
    Kind.STEAL: (STEALER,),
    Kind.TRANSFER: (COUNTER, OWNER),
    Kind.CHECKPOINT: (COUNTER, CHECKPOINT),
    Kind.HAND_OVER: (COUNTER, OWNER, STEALER),
    Kind.RELEASE: (COUNTER, OWNER, STEALER),
    Kind.RESTORE: (COUNTER, OWNER, STEALER, CHECKPOINT),
}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a lease, for the state in which its worker saw it.

    Args:
        before: the lease as seen.
        worker: who takes, steals or restores, or the heir.
        position: the new checkpoint.
        counter: that of the lost lease, which is restored.
        takes_released: whether the row says of its new owner that it takes released leases at once.
    """

    kind: Kind
    before: Lease
    worker: WorkerId = NO_WORKER
    position: Position | None = None
    counter: int = 0
    takes_released: bool = False

    @property
    def asks_how_the_row_came(self) -> bool:
        """Whether the row must still be the one that was created because there was none.

        Another worker may have taken that one since, and a late write of the library may have set it back to what was
        seen: counter 0, no owner.
        """
        return self.kind is Kind.TAKE and self.before.counter == 0 and self.before.created_if_missing

    @property
    def after(self) -> Lease:
        """The lease after the change."""
        lease = self.before
        if self.kind is Kind.STEAL:
            return replace(lease, stealer=self.worker)
        lease = replace(lease, counter=max(lease.counter, self.counter) + 1)
        if self.position is not None:
            lease = replace(lease, checkpoint=self.position)
        match self.kind:
            case Kind.TAKE | Kind.RESTORE:
                return replace(lease, owner=self.worker, stealer=NO_WORKER, takes_released=self.takes_released)
            case Kind.TRANSFER:
                return replace(lease, owner=lease.stealer, takes_released=False)
            case Kind.HAND_OVER:
                return replace(lease, owner=self.worker, stealer=self.worker, takes_released=False)
            case Kind.RELEASE:
                return replace(lease, owner=NO_WORKER, stealer=NO_WORKER, takes_released=False)
        return lease

    def may_be_made_to(self, row: Lease) -> bool:
        """Whether the write's condition holds for the row."""
        if self.kind is Kind.STEAL:
            return row.owner == self.before.owner and row.stealer == NO_WORKER
        if self.asks_how_the_row_came and not row.created_if_missing:
            return False
        return (row.counter, row.owner) == (self.before.counter, self.before.owner)

    def made_to(self, row: Lease) -> Lease:
        """The row after the write, which leaves what the change does not write; the condition is not asked."""
        after = self.after
        written = WRITES[self.kind]
        return replace(
            row,
            counter=after.counter if COUNTER in written else row.counter,
            owner=after.owner if OWNER in written else row.owner,
            takes_released=after.takes_released if OWNER in written else row.takes_released,
            stealer=after.stealer if STEALER in written else row.stealer,
            checkpoint=after.checkpoint if CHECKPOINT in written else row.checkpoint,
        )


def renew(lease: Lease) -> Change:
    """Show that the owner lives."""
    return Change(Kind.RENEW, lease)


def take(lease: Lease, me: WorkerId) -> Change:
    """Become the owner."""
    return Change(Kind.TAKE, lease, me, takes_released=True)


def steal(lease: Lease, me: WorkerId) -> Change:
    """Ask the owner for the lease."""
    return Change(Kind.STEAL, lease, me)


def transfer(lease: Lease) -> Change:
    """Give the lease to its stealer.

    Raises:
        ValueError: it has none.
    """
    if lease.stealer == NO_WORKER:
        raise ValueError(f"stealer of shard {lease.shard_id!r}: found none, a transfer needs one")
    return Change(Kind.TRANSFER, lease)


def store(lease: Lease, position: Position) -> Change:
    """Store a checkpoint, which renews the lease as well."""
    return Change(Kind.CHECKPOINT, lease, position=position)


def hand_over(lease: Lease, heir: WorkerId) -> Change:
    """Give the lease to a worker that did not ask for it."""
    return Change(Kind.HAND_OVER, lease, heir)


def release(lease: Lease) -> Change:
    """Leave the lease to any worker."""
    return Change(Kind.RELEASE, lease)


def restore(row: Lease, lost: Lease) -> Change:
    """Put into a row, which a worker of the Java library has written over a lease, what it has lost."""
    return Change(Kind.RESTORE, row, lost.owner, lost.checkpoint, lost.counter, takes_released=True)
