"""Requests to a table: carries out with coroutines what `batch_write` decides.

A request may take D seconds and asks the guard right before its bytes leave (docs/architecture.md rule 4), also when
it is sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ots_tunnel.client.table_calls import RowChange, RowOutcome
from ots_tunnel.errors import TunnelError
from ots_tunnel.fence import Guard, RequestFence
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.http.message import SummedBody
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.contact import Tries, Writes
from ots_tunnel.sinks.table.batch_write import BatchWrite, Pause, Refusal, Send
from ots_tunnel.sinks.table.encoding import Encoded
from ots_tunnel.sinks.table.lifetime import Revision
from ots_tunnel.sinks.table.refusals import Refusals
from ots_tunnel.sinks.table.row_change import Change, unaltered_change

Settle = Callable[[Iterable[Change]], None]
Revise = Callable[[Sequence[Refusal]], Awaitable[Sequence[Revision]]]


class WritesRows(Protocol):
    """The calls of `TableClient` that write."""

    async def batch_write(
        self, table: str, rows: list[RowChange], *, timeout: float, before_send: Callable[[], None] | None = None
    ) -> list[RowOutcome]:
        """One request; see `TableClient.batch_write`."""
        ...

    async def write_encoded(
        self, body: SummedBody, count: int, *, timeout: float, before_send: Callable[[], None] | None = None
    ) -> list[RowOutcome] | None:
        """One request; see `TableClient.write_encoded`."""
        ...


@dataclass(slots=True)
class WriteCounts:
    """Counts of one writer."""

    rows: int = 0
    """Row changes stored."""
    requests: int = 0
    """Requests sent, repeated ones included."""
    retries: int = 0
    """Pauses after a failed request or failed rows."""


class TableRequests:
    """Requests to one table, any number at the same time.

    Args:
        client: connections to the table's instance.
        table: destination table.
        backoff: pauses between tries.
        deadline: D, seconds that a request may take.
        entropy: random numbers in [0, 1) for the pauses.
        revise: asked what of refused changes is to be sent again, before a refusal counts.
    """

    def __init__(
        self,
        client: WritesRows,
        table: str,
        *,
        backoff: Backoff,
        deadline: float,
        entropy: Callable[[], float],
        revise: Revise,
    ) -> None:
        self._client = client
        self._table = table
        self._backoff = backoff
        self._deadline = deadline
        self._entropy = entropy
        self._revise = revise
        self.writes = Writes()
        self.counts = WriteCounts()

    def __repr__(self) -> str:
        return f"TableRequests({self._table}, {self.counts})"

    async def write(self, changes: tuple[Change, ...], settle: Settle, guard: Guard, refusals: Refusals) -> None:
        """Write changes of different rows.

        Args:
            settle: called with the changes that are stored or tolerated, as soon as they are.
            refusals: takes the changes that are refused for good.

        Raises:
            OwnershipLost: the guard forbids to send. TunnelError: what `revise` raised.
        """
        batch = BatchWrite(changes, self._backoff, refusals.max_per_request)
        await self._run(batch, settle, RequestFence(guard, self._deadline), refusals)

    async def repeat(self, request: Encoded, guard: Guard, refusals: Refusals) -> None:
        """Write records of different rows as they are; row changes are made only of what has to be sent again.

        Args:
            refusals: takes the changes that are refused for good.

        Raises:
            OwnershipLost: the guard forbids to send. TunnelError: what `revise` raised.
        """
        fence, records = RequestFence(guard, self._deadline), request.records
        self.counts.requests += 1
        try:
            outcomes = await self._client.write_encoded(
                request.body, len(records), timeout=self._deadline, before_send=fence.check
            )
        except TunnelError as error:
            batch = self._batch_of(records, refusals)
            batch.failed(error)
        else:
            if outcomes is None:
                self.counts.rows += len(records)
                return self.writes.confirmed()
            batch = self._batch_of(records, refusals)
            self.counts.rows += len(batch.answered(outcomes))
        await self._run(batch, _ignore, fence, refusals)

    def _batch_of(self, records: list[Record], refusals: Refusals) -> BatchWrite:
        return BatchWrite(list(map(unaltered_change, records)), self._backoff, refusals.max_per_request)

    async def _run(self, batch: BatchWrite, settle: Settle, fence: RequestFence, refusals: Refusals) -> None:
        with self.writes.tries() as tries:
            await self._run_until_stored(batch, settle, fence, refusals, tries)

    async def _run_until_stored(
        self, batch: BatchWrite, settle: Settle, fence: RequestFence, refusals: Refusals, tries: Tries
    ) -> None:
        while (step := batch.step(self._entropy())) is not None or await self._goes_on(batch, settle):
            match step:
                case Pause():
                    if refusals.is_fatal():
                        break  # another request has failed the write
                    self.counts.retries += 1
                    tries.failed("writes to the destination fail and are tried again", step.code, table=self._table)
                    await asyncio.sleep(step.wait(fence.in_doubt))
                case Send():
                    stored = await self._send(batch, step, fence)
                    self.counts.rows += len(stored)
                    settle(stored)
                    if stored:
                        self.writes.confirmed()
                        tries.advanced()
        # A tolerated change makes room for the next one of its key.
        settle(refusals.tolerate(batch.refusals))

    async def _goes_on(self, batch: BatchWrite, settle: Settle) -> bool:
        """Whether something of the refused changes is sent again."""
        revisions = await self._revise(batch.refusals) if batch.refusals else []
        if not revisions:
            return False
        batch.again(
            [revision.refusal for revision in revisions],
            [revision.change for revision in revisions if revision.change is not None],
        )
        settle([revision.refusal.change for revision in revisions if revision.change is None])
        return True

    async def _send(self, batch: BatchWrite, step: Send, fence: RequestFence) -> tuple[Change, ...]:
        self.counts.requests += 1
        rows = [change.row for change in step.changes]
        try:
            outcomes = await self._client.batch_write(
                self._table, rows, timeout=self._deadline, before_send=fence.check
            )
            return batch.answered(outcomes)
        except TunnelError as error:
            batch.failed(error)
            return ()


def _ignore(changes: Iterable[Change]) -> None:
    """No change waits for another one in a wave."""
