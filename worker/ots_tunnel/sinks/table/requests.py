"""One request to a table, carried through until each of its changes is stored or refused; coroutines.

What `delivery` decides is carried out here. A request may take `deadline` seconds and asks the guard right before its
bytes go out (docs/architecture.md rule 4), also when it is sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from ots_tunnel.client.table_calls import RowChange, RowOutcome
from ots_tunnel.errors import TunnelError
from ots_tunnel.fence import Guard, RequestFence
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.retries import RetryReporter
from ots_tunnel.sinks.table.delivery import Delivery, Pause, Send
from ots_tunnel.sinks.table.refusals import Refusals
from ots_tunnel.sinks.table.row_change import Change


class WritesRows(Protocol):
    """The part of `TableClient` that is needed."""

    async def batch_write(
        self, table: str, rows: list[RowChange], *, timeout: float, before_send: Callable[[], None] | None = None
    ) -> list[RowOutcome]:
        """One request; see `TableClient.batch_write`."""
        ...

    async def repeat_records(
        self, table: str, records: list[Record], *, timeout: float, before_send: Callable[[], None] | None = None
    ) -> list[RowOutcome] | None:
        """One request; see `TableClient.repeat_records`."""
        ...


@dataclass(slots=True)
class WriteCounts:
    """What a writer did so far."""

    rows: int = 0
    """Row changes stored."""
    requests: int = 0
    """Requests sent, repetitions included."""
    retries: int = 0
    """Pauses after a failed request or failed rows."""


class TableRequests:
    """Requests to one table, any number at the same time.

    Args:
        client: connections to the table's instance.
        table: destination table.
        backoff: pauses between tries.
        deadline: seconds a request may take.
        entropy: random numbers in [0, 1) for the pauses.
    """

    def __init__(
        self, client: WritesRows, table: str, *, backoff: Backoff, deadline: float, entropy: Callable[[], float]
    ) -> None:
        self._client = client
        self._table = table
        self._backoff = backoff
        self._deadline = deadline
        self._entropy = entropy
        self._reporter = RetryReporter(table)
        self.counts = WriteCounts()

    def __repr__(self) -> str:
        return f"TableRequests({self._table}, {self.counts})"

    async def deliver(
        self,
        changes: tuple[Change, ...],
        settle: Callable[[Iterable[Change]], None],
        guard: Guard,
        refusals: Refusals,
    ) -> None:
        """Write changes of different rows.

        Args:
            settle: told which changes are done with, as soon as they are.
            refusals: takes what is refused for good.

        Raises:
            OwnershipLost: the guard forbids to send.
        """
        delivery = Delivery(changes, self._backoff, refusals.most)
        await self._carry_through(delivery, settle, RequestFence(guard, self._deadline), refusals)

    async def repeat(
        self, records: list[Record], change: Callable[[Record], Change], guard: Guard, refusals: Refusals
    ) -> None:
        """Write records of different rows as they are.

        Args:
            change: makes what is sent again of a record that was not stored.
            refusals: takes what is refused for good.

        Raises:
            OwnershipLost: the guard forbids to send.
        """
        fence = RequestFence(guard, self._deadline)
        self.counts.requests += 1
        try:
            outcomes = await self._client.repeat_records(
                self._table, records, timeout=self._deadline, before_send=fence.check
            )
        except TunnelError as error:
            delivery = Delivery([change(record) for record in records], self._backoff, refusals.most)
            delivery.failed(error)
        else:
            if outcomes is None:
                self.counts.rows += len(records)
                return
            delivery = Delivery([change(record) for record in records], self._backoff, refusals.most)
            self.counts.rows += len(delivery.answered(outcomes))
        await self._carry_through(delivery, _ignore, fence, refusals)

    async def _carry_through(
        self, delivery: Delivery, settle: Callable[[Iterable[Change]], None], fence: RequestFence, refusals: Refusals
    ) -> None:
        while (step := delivery.step(self._entropy())) is not None:
            match step:
                case Pause():
                    if refusals.end_the_write():
                        break  # another request's refusal: what failed here is not tried again
                    self.counts.retries += 1
                    self._reporter.report(step.code)
                    await asyncio.sleep(step.wait(fence.in_doubt))
                case Send():
                    stored = await self._send(delivery, step, fence)
                    self.counts.rows += len(stored)
                    settle(stored)
        # A refused change that is put up with makes room for the next one of its key.
        settle(refusals.take(delivery.rejections))

    async def _send(self, delivery: Delivery, step: Send, fence: RequestFence) -> tuple[Change, ...]:
        self.counts.requests += 1
        rows = [change.row for change in step.changes]
        try:
            outcomes = await self._client.batch_write(
                self._table, rows, timeout=self._deadline, before_send=fence.check
            )
            return delivery.answered(outcomes)
        except TunnelError as error:
            delivery.failed(error)
            return ()


def _ignore(changes: Iterable[Change]) -> None:
    """Nothing waits for single changes of a wave."""
