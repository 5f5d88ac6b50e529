"""The writer of tables with several requests in flight: what `grouping` decides, carried out with coroutines.

`blocking_writer` is the same for one request at a time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from ots_tunnel.fence import Guard
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import OnRefused
from ots_tunnel.sinks.grouping import Grouping, Limits
from ots_tunnel.sinks.lanes import Request, fill_lanes
from ots_tunnel.sinks.table.refusals import Refusals
from ots_tunnel.sinks.table.requests import TableRequests, WriteCounts, WritesRows
from ots_tunnel.sinks.table.row_change import Change
from ots_tunnel.sinks.table.waves import Wave


class TableWriter:
    """Writes changes of one table with up to `lanes` requests in flight; coroutines.

    Args:
        client: connections to the table's instance.
        table: destination table.
        limits: what one request may hold.
        backoff: pauses between tries.
        lanes: requests in flight per `write`.
        deadline: seconds a request may take.
        entropy: random numbers in [0, 1) for the pauses.
    """

    def __init__(
        self,
        client: WritesRows,
        table: str,
        *,
        limits: Limits,
        backoff: Backoff,
        lanes: int,
        deadline: float,
        entropy: Callable[[], float] = random.random,
    ) -> None:
        self._requests = TableRequests(client, table, backoff=backoff, deadline=deadline, entropy=entropy)
        self._table = table
        self._limits = limits
        self._lanes = lanes

    def __repr__(self) -> str:
        return f"TableWriter({self._table}, {self.counts})"

    @property
    def counts(self) -> WriteCounts:
        """Rows, requests and retries so far."""
        return self._requests.counts

    async def write(self, changes: Iterable[Change], guard: Guard, refused: OnRefused | None = None) -> None:
        """Write all changes, in order per key; returns when every one is stored.

        When a change is refused, requests in flight are awaited, so that nothing is under way afterwards.

        Args:
            refused: takes the records of changes that are refused for good, while the others are written.

        Raises:
            SinkRejected: changes are refused for good, and `refused` is None or they are not about single rows.
            OwnershipLost: the guard forbids to send.
        """
        grouping: Grouping[Change] = Grouping(self._limits)
        for change in changes:
            grouping.add(change)
        refusals = Refusals(refused)

        def following() -> Request | None:
            taken = grouping.take()
            return self._requests.deliver(taken, grouping.settle, guard, refusals) if taken else None

        await self._fill_lanes(following, refusals)

    async def repeat(
        self, wave: Wave, change: Callable[[Record], Change], guard: Guard, refused: OnRefused | None = None
    ) -> None:
        """Write the requests of one wave; returns when every record is stored.

        Args:
            change: makes what is sent again of a record that was not stored.
            refused: see `write`.

        Raises:
            SinkRejected: see `write`.
            OwnershipLost: the guard forbids to send.
        """
        refusals = Refusals(refused)
        requests = iter(wave)

        def following() -> Request | None:
            records = next(requests, None)
            return None if records is None else self._requests.repeat(records, change, guard, refusals)

        await self._fill_lanes(following, refusals)

    async def _fill_lanes(self, following: Callable[[], Request | None], refusals: Refusals) -> None:
        await fill_lanes(self._lanes, following, refusals.end_the_write)
        refusals.check()
