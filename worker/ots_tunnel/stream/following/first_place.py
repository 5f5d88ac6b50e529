"""The place of a shard's first page becomes the checkpoint of its lease, before anything gets the page.

TRIM_HORIZON moves: what the stream drops is no part of it any more. Where the records of a first page are dropped
before a checkpoint behind them is stored, the next reading of that place is refused, and that is a possible gap; at
TRIM_HORIZON it would go on behind them in silence. A place is an iterator like that of any checkpoint, from which the
vendor's Java library reads as well.
"""

from __future__ import annotations

from ots_tunnel.stream.following.reader import ShardReader
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.lease.lease import TRIM_HORIZON, Position


def first_place(reader: ShardReader, held: HeldLease) -> Position | None:
    """The place to store, once a page is read; None where the lease has a place, or nothing was read as the oldest."""
    if reader.oldest is None or held.lease.checkpoint not in (TRIM_HORIZON, ""):
        return None
    return Position(reader.oldest)
