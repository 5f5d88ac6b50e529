"""Writer of a table with several requests in flight: carries out with coroutines what `grouping` decides.

`blocking_writer` does the same with one request at a time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from ots_tunnel.fence import Guard
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import OnRefused
from ots_tunnel.sinks.contact import Writes
from ots_tunnel.sinks.feed import Feed
from ots_tunnel.sinks.grouping import Grouping, Limits
from ots_tunnel.sinks.lanes import Request, fill_lanes
from ots_tunnel.sinks.slices import Turns
from ots_tunnel.sinks.table.encoding import encoded
from ots_tunnel.sinks.table.lifetime import nothing_to_revise
from ots_tunnel.sinks.table.refusals import Refusals
from ots_tunnel.sinks.table.requests import Revise, TableRequests, WriteCounts, WritesRows
from ots_tunnel.sinks.table.row_change import Change, unaltered_change
from ots_tunnel.sinks.table.waves import Wave


def _as_it_is(record: Record) -> tuple[Change]:
    return (unaltered_change(record),)


class TableWriter:
    """Writes changes of one table with up to `lanes` requests in flight; coroutines.

    Args:
        client: connections to the table's instance.
        table: destination table.
        limits: most that one request may hold.
        backoff: pauses between tries.
        lanes: requests in flight per `write`.
        deadline: D, seconds that a request may take.
        entropy: random numbers in [0, 1) for the pauses.
        revise: see `TableRequests`.
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
        revise: Revise = nothing_to_revise,
    ) -> None:
        self._requests = TableRequests(
            client, table, backoff=backoff, deadline=deadline, entropy=entropy, revise=revise
        )
        self._table = table
        self._limits = limits
        self._lanes = lanes
        self._turns = Turns()

    def __repr__(self) -> str:
        return f"TableWriter({self._table}, {self.counts})"

    @property
    def counts(self) -> WriteCounts:
        """Rows, requests and retries so far."""
        return self._requests.counts

    @property
    def writes(self) -> Writes:
        """What is known of the table."""
        return self._requests.writes

    async def write(
        self,
        records: Iterable[Record],
        guard: Guard,
        on_refused: OnRefused | None = None,
        changes_of: Callable[[Record], Iterable[Change]] = _as_it_is,
    ) -> None:
        """Write the changes of all records, in order per key; return when every one is stored.

        A refusal that fails the write waits for the requests in flight, so that nothing is under way afterwards.

        Args:
            on_refused: called with the records of rows that are refused for good, while the others are written.
            changes_of: makes the changes of a record when requests need them.

        Raises:
            SinkRejected: changes are refused for good, and `on_refused` is None or they are not about single rows.
            OwnershipLost: the guard forbids to send.
        """
        grouping: Grouping[Change] = Grouping(self._limits)
        feed = Feed(records, changes_of, grouping, self._limits, self._turns)
        refusals = Refusals(on_refused)

        def next_request() -> Request | None:
            taken = grouping.take()
            return self._requests.write(taken, grouping.settle, guard, refusals) if taken else None

        await fill_lanes(self._lanes, next_request, refusals.is_fatal, feed.fill)
        refusals.raise_fatal()

    async def repeat(self, wave: Wave, guard: Guard, on_refused: OnRefused | None = None) -> None:
        """Write the requests of one wave; return when every record is stored.

        Args:
            on_refused: see `write`.

        Raises:
            SinkRejected, OwnershipLost: see `write`. CodecError: a record is malformed.
        """
        refusals = Refusals(on_refused)
        requests = encoded(self._table, wave)

        def next_request() -> Request | None:
            request = next(requests, None)
            return None if request is None else self._requests.repeat(request, guard, refusals)

        await fill_lanes(self._lanes, next_request, refusals.is_fatal)
        refusals.raise_fatal()
