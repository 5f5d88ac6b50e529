"""Whether a change was made whose write was not answered, from the row that is read afterwards.

Theory of operation. A write that timed out may have been carried out, may be carried out later, or may never be. The
Java library repeats it, fails the condition that its own first try has moved, and believes that it lost the lease. Here
the row is read, and it tells:

    row                                                      the change
    holds what the change writes                             MADE, or made by a later try
    is one to which the change may be made                   OPEN: not made yet; it can be sent again, because both
                                                             writes have one condition, and one of them fails
    anything else, or no row                                 LOST: another worker was faster

"Holds what the change writes" is exact for a write that moves the counter: counter, owner and checkpoint are those
after the change, and so is the stealer, if the change writes it; otherwise another worker may have asked for the lease
meanwhile. No other worker writes the same, because its id differs. A steal is made while its mark stands.

Example: a renewal from 7 to 8 times out. The row has counter 8 and our id: MADE. It has 7: OPEN. It has 8 and another
id: LOST.
"""

from __future__ import annotations

import enum

from ots_tunnel.stream.lease.change import WRITES, Change, Kind
from ots_tunnel.stream.lease.lease import HalfLease, Lease
from ots_tunnel.stream.lease.row import STEALER


class Settled(enum.Enum):
    """What became of a change."""

    MADE = "made"
    OPEN = "open"
    LOST = "lost"


def settle(change: Change, row: Lease | HalfLease | None) -> Settled:
    """What became of a change whose write was not answered.

    Args:
        row: the lease as it was read after the write; None if there is none.
    """
    if not isinstance(row, Lease):
        return Settled.LOST
    if is_made(change, row):
        return Settled.MADE
    return Settled.OPEN if change.may_be_made_to(row) else Settled.LOST


def is_made(change: Change, row: Lease) -> bool:
    """Whether the row is as the change leaves it."""
    after = change.after
    if change.kind is Kind.STEAL:
        return (row.owner, row.stealer) == (after.owner, after.stealer)
    same = (row.counter, row.owner, row.checkpoint) == (after.counter, after.owner, after.checkpoint)
    return same and (row.stealer == after.stealer or STEALER not in WRITES[change.kind])
