"""A user's processor for the library: its work takes effect at once, and then it stores a checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ots_tunnel.protocol.record import Record
from ots_tunnel.stream.lease.lease import Position
from tests.simulation.leases.library.coordinator import Coordinator, Held, Shutdown
from tests.simulation.machine.determinism import CURRENT
from tests.simulation.service import change_of_record
from tests.support.ledger import Entry, Written

#: Seconds until a record is processed: mostly short, sometimes longer than a round.
USUAL, LONG = (0.001, 0.05), (3.0, 15.0)


class Processor:
    """Processes one shard.

    Args:
        witness: learns what has taken effect.
    """

    def __init__(self, coordinator: Coordinator, held: Held, witness: Callable[[Entry], None]) -> None:
        self._coordinator = coordinator
        self._held = held
        self._witness = witness
        #: Largest checkpoint that may be stored; None before the first records.
        self.permitted: Position | None = None
        #: Whether the lease was found lost: the processor does nothing more.
        self.is_over = False

    async def process(self, records: Sequence[Record], permitted: Position) -> None:
        """Process the records of a page, and store a checkpoint behind it."""
        process = CURRENT.get()
        self.permitted = permitted
        if self.is_over:
            return
        if records:
            await asyncio.sleep(process.chance.uniform(*(LONG if process.chance.random() < 0.03 else USUAL)))
            now = process.boottime()
            self._witness(Written(now, process.name, now, tuple(map(change_of_record, records))))
        await self.checkpoint()

    async def checkpoint(self) -> None:
        """Store the largest permitted checkpoint, unless the lease is lost."""
        if self.permitted is None or self.is_over:
            return
        try:
            await self._coordinator.store(self._held, self.permitted)
        except Shutdown:
            self.is_over = True
