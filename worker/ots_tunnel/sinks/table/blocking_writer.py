"""Writer of a table with one request at a time, which blocks: used by Spark's executors.

`writer` does the same with several requests in flight. Both carry out what `grouping` and `batch_write` decide.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from ots_tunnel.client.table_calls import RowChange, RowOutcome
from ots_tunnel.config import RetryConfig
from ots_tunnel.errors import TunnelError
from ots_tunnel.fence import Guard, RequestFence
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import OnRefused
from ots_tunnel.sinks.grouping import Grouping, Limits
from ots_tunnel.sinks.retries import log_retry, write_backoff
from ots_tunnel.sinks.table.batch_write import BatchWrite, Pause, Send
from ots_tunnel.sinks.table.refusals import Refusals
from ots_tunnel.sinks.table.requests import Settle, WriteCounts
from ots_tunnel.sinks.table.row_change import Change, unaltered_change
from ots_tunnel.sinks.table.waves import Wave

#: Changes that are held while more are read from an iterator, in requests: enough to fill the next request beside a
#: hot key's queue, and a bound of that queue.
HELD_REQUESTS = 4
#: Bytes that are held, in full requests: the bound for large rows.
HELD_REQUESTS_BYTES = 2


class WritesRowsBlocking(Protocol):
    """The calls of `SyncTableClient` that write."""

    def batch_write(
        self, table: str, rows: list[RowChange], *, timeout: float, before_send: Callable[[], None] | None = None
    ) -> list[RowOutcome]:
        """One request; see `SyncTableClient.batch_write`."""
        ...

    def repeat_records(
        self, table: str, records: list[Record], *, timeout: float, before_send: Callable[[], None] | None = None
    ) -> list[RowOutcome] | None:
        """One request; see `SyncTableClient.repeat_records`."""
        ...


class SyncTableWriter:
    """Writes changes of one table, one request at a time; blocks.

    Args:
        client: connections to the table's instance.
        table: destination table.
        limits: most that one request may hold.
        retry: pauses between tries.
        guard: asked before every request.
        deadline: D, seconds that a request may take.
        entropy: random numbers in [0, 1) for the pauses.
        sleep: waits between tries.
    """

    def __init__(
        self,
        client: WritesRowsBlocking,
        table: str,
        limits: Limits,
        retry: RetryConfig,
        guard: Guard,
        *,
        deadline: float = 60.0,
        entropy: Callable[[], float] = random.random,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._table = table
        self._limits = limits
        self._backoff = write_backoff(retry)
        self._guard = guard
        self._deadline = deadline
        self._entropy = entropy
        self._sleep = sleep
        self.counts = WriteCounts()

    def __repr__(self) -> str:
        return f"SyncTableWriter({self._table}, {self.counts})"

    def write(self, changes: Iterable[Change], on_refused: OnRefused | None = None) -> WriteCounts:
        """Write all changes, in order per key; returns when every one is stored.

        Changes are read as they are needed: about `HELD_REQUESTS` requests of them are held at a time.

        Args:
            on_refused: called with the records of rows that are refused for good, while the others are written.

        Raises:
            SinkRejected: changes are refused for good, and `on_refused` is None or they are not about single rows.
            OwnershipLost: the guard forbids to send.
        """
        grouping: Grouping[Change] = Grouping(self._limits)
        source = iter(changes)
        while True:
            self._fill(grouping, source)
            taken = grouping.take()
            if not taken:
                return self.counts
            self._write(taken, grouping, Refusals(on_refused))

    def repeat(self, wave: Wave) -> WriteCounts:
        """Write the requests of one wave, records as they are; returns when every one is stored.

        Row changes are made only of what has to be sent again.

        Raises:
            SinkRejected, OwnershipLost: see `write`.
        """
        for records in wave:
            self._repeat(records)
        return self.counts

    def _repeat(self, records: list[Record]) -> None:
        fence = RequestFence(self._guard, self._deadline)
        self.counts.requests += 1
        try:
            outcomes = self._client.repeat_records(
                self._table, records, timeout=self._deadline, before_send=fence.check
            )
        except TunnelError as error:
            batch = self._batch_of(records)
            batch.failed(error)
        else:
            if outcomes is None:
                self.counts.rows += len(records)
                return
            batch = self._batch_of(records)
            self.counts.rows += len(batch.answered(outcomes))
        self._run(batch, fence, _ignore, Refusals(None))

    def _batch_of(self, records: list[Record]) -> BatchWrite:
        return BatchWrite(list(map(unaltered_change, records)), self._backoff)

    def _fill(self, grouping: Grouping[Change], source: Iterator[Change]) -> None:
        max_rows = self._limits.max_rows * HELD_REQUESTS
        max_bytes = self._limits.max_bytes * HELD_REQUESTS_BYTES
        while (
            grouping.ready_rows < self._limits.max_rows
            and grouping.held_rows < max_rows
            and grouping.held_bytes < max_bytes
        ):
            change = next(source, None)
            if change is None:
                return
            grouping.add(change)

    def _write(self, changes: tuple[Change, ...], grouping: Grouping[Change], refusals: Refusals) -> None:
        batch = BatchWrite(changes, self._backoff, refusals.max_per_request)
        self._run(batch, RequestFence(self._guard, self._deadline), grouping.settle, refusals)

    def _run(self, batch: BatchWrite, fence: RequestFence, settle: Settle, refusals: Refusals) -> None:
        while (step := batch.step(self._entropy())) is not None:
            match step:
                case Pause():
                    self.counts.retries += 1
                    log_retry("writes to the destination fail and are tried again", step.code, table=self._table)
                    self._sleep(step.wait(fence.in_doubt))
                case Send():
                    stored = self._send(batch, step, fence)
                    self.counts.rows += len(stored)
                    settle(stored)
        # A tolerated change makes room for the next one of its key.
        settle(refusals.tolerate(batch.refusals))
        refusals.raise_fatal()

    def _send(self, batch: BatchWrite, step: Send, fence: RequestFence) -> tuple[Change, ...]:
        self.counts.requests += 1
        rows = [change.row for change in step.changes]
        try:
            outcomes = self._client.batch_write(self._table, rows, timeout=self._deadline, before_send=fence.check)
            return batch.answered(outcomes)
        except TunnelError as error:
            batch.failed(error)
            return ()


def _ignore(changes: Iterable[Change]) -> None:
    """No change waits for another one in a wave."""
