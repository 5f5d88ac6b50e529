"""What a keeper calls when leases come and go."""

from __future__ import annotations

from typing import Protocol

from ots_tunnel.errors import TunnelError
from ots_tunnel.stream.holding.held_lease import HeldLease


class Work(Protocol):
    """What reads the shards; the keeper calls it, and nothing here may block."""

    def gained(self, held: HeldLease) -> None:
        """A lease is held: its shard may be read."""
        ...

    def asked(self, held: HeldLease) -> None:
        """The lease is to be given away: stop, then call `LeaseKeeper.give`. Called in every round until then."""
        ...

    def lost(self, held: HeldLease) -> None:
        """Another worker owns the lease, or may own it: stop at once, write nothing."""
        ...

    def failed(self, error: TunnelError) -> None:
        """A call failed and is made again in the next round, or a row of the table is no lease and is left out."""
        ...
