"""The one writer of tables: what `grouping` and `delivery` decide, carried out with coroutines or blocking.

The worker's sink uses `TableWriter` with several requests in flight, Spark's executors `SyncTableWriter` with one.
Every request may take `deadline` seconds and asks the guard right before its bytes go out (design rule 4), also when
it is sent again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from ots_tunnel.config import RetryConfig
from ots_tunnel.errors import TunnelError
from ots_tunnel.fence import Guard
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Refused
from ots_tunnel.sinks.delivery import MAX_REJECTIONS, Delivery, Pause, Rejection, Send, rejection_error
from ots_tunnel.sinks.grouping import Grouping, Limits
from ots_tunnel.sinks.lanes import Request, fill_lanes
from ots_tunnel.sinks.requests import Wave
from ots_tunnel.sinks.row_change import Change, change_of
from ots_tunnel.table_calls import RowChange, RowOutcome

logger = logging.getLogger(__name__)

#: Requests' worth of changes that are held while more are read from an iterator: enough to fill the next request
#: beside a hot key's queue, and a bound for its growth.
HELD_REQUESTS = 4

#: Seconds between two warnings that writes are tried again.
WARNING_PAUSE = 60.0


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


class WritesRowsBlocking(Protocol):
    """The part of `SyncTableClient` that is needed."""

    def batch_write(
        self, table: str, rows: list[RowChange], *, timeout: float, before_send: Callable[[], None] | None = None
    ) -> list[RowOutcome]:
        """One request; see `SyncTableClient.batch_write`."""
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


def write_backoff(retry: RetryConfig) -> Backoff:
    """Pauses of the document's delivery.retry: doubling, capped, a third more or less by chance."""
    return Backoff(retry.backoff_seconds, 2.0, retry.backoff_max_seconds, 0.33)


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
        self._client = client
        self._table = table
        self._limits = limits
        self._backoff = backoff
        self._lanes = lanes
        self._deadline = deadline
        self._entropy = entropy
        self._reporter = _RetryReporter(table)
        self.counts = WriteCounts()

    def __repr__(self) -> str:
        return f"TableWriter({self._table}, {self.counts})"

    async def write(self, changes: Iterable[Change], guard: Guard, refused: Refused | None = None) -> None:
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
        refusals = _Refusals(refused)

        def following() -> Request | None:
            taken = grouping.take()
            if not taken:
                return None
            delivery = Delivery(taken, self._backoff, refusals.most)
            return self._deliver(delivery, grouping.settle, _Doubt(guard, self._deadline), refusals)

        await self._fill_lanes(following, refusals)

    async def repeat(
        self, wave: Wave, change: Callable[[Record], Change], guard: Guard, refused: Refused | None = None
    ) -> None:
        """Write the requests of one wave; returns when every record is stored.

        Args:
            change: makes what is sent again of a record that was not stored.
            refused: see `write`.

        Raises:
            SinkRejected: see `write`.
            OwnershipLost: the guard forbids to send.
        """
        refusals = _Refusals(refused)
        requests = iter(wave)

        def following() -> Request | None:
            records = next(requests, None)
            return None if records is None else self._repeat(records, change, guard, refusals)

        await self._fill_lanes(following, refusals)

    async def _fill_lanes(self, following: Callable[[], Request | None], refusals: _Refusals) -> None:
        await fill_lanes(self._lanes, following, lambda: bool(refusals.fatal))
        if refusals.fatal:
            raise rejection_error(refusals.fatal)

    async def _repeat(
        self, records: list[Record], change: Callable[[Record], Change], guard: Guard, refusals: _Refusals
    ) -> None:
        doubt = _Doubt(guard, self._deadline)
        self.counts.requests += 1
        try:
            outcomes = await self._client.repeat_records(
                self._table, records, timeout=self._deadline, before_send=doubt.check
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
        await self._deliver(delivery, _ignore, doubt, refusals)

    async def _deliver(
        self,
        delivery: Delivery,
        settle: Callable[[Iterable[Change]], None],
        doubt: _Doubt,
        refusals: _Refusals,
    ) -> None:
        # Another lane's refusal ends the write: what failed here is not tried again then.
        while (step := delivery.step(self._entropy())) is not None and not (refusals.fatal and isinstance(step, Pause)):
            match step:
                case Pause():
                    self.counts.retries += 1
                    self._reporter.report(step)
                    await asyncio.sleep(doubt.pause(step))
                case Send():
                    stored = await self._send(delivery, step, doubt)
                    self.counts.rows += len(stored)
                    settle(stored)
        # A refused change that is put up with makes room for the next one of its key.
        settle(refusals.take(delivery.rejections))

    async def _send(self, delivery: Delivery, step: Send, guard: _Doubt) -> tuple[Change, ...]:
        self.counts.requests += 1
        rows = [change.row for change in step.changes]
        try:
            outcomes = await self._client.batch_write(
                self._table, rows, timeout=self._deadline, before_send=guard.check
            )
            return delivery.answered(outcomes)
        except TunnelError as error:
            delivery.failed(error)
            return ()


class SyncTableWriter:
    """Writes changes of one table, one request at a time; blocks.

    Args:
        client: connections to the table's instance.
        table: destination table.
        limits: what one request may hold.
        retry: pauses between tries.
        guard: asked before every request.
        deadline: seconds a request may take.
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
        self._reporter = _RetryReporter(table)
        self.counts = WriteCounts()

    def __repr__(self) -> str:
        return f"SyncTableWriter({self._table}, {self.counts})"

    def write(self, rows: Iterable[RowChange]) -> WriteCounts:
        """Write all rows, in order per key; returns when every one is stored.

        Rows are read as they are needed: about `HELD_REQUESTS` requests' worth is held at a time.

        Raises:
            SinkRejected: rows are refused for good.
            OwnershipLost: the guard forbids to send.
            CodecError: a row's bytes are malformed.
        """
        grouping: Grouping[Change] = Grouping(self._limits)
        source = map(change_of, rows)
        while True:
            self._fill(grouping, source)
            taken = grouping.take()
            if not taken:
                return self.counts
            self._deliver(taken, grouping)

    def _fill(self, grouping: Grouping[Change], source: Iterator[Change]) -> None:
        most_rows = self._limits.max_rows * HELD_REQUESTS
        most_bytes = self._limits.max_bytes * 2
        while (
            grouping.ready_rows < self._limits.max_rows
            and grouping.held_rows < most_rows
            and grouping.held_bytes < most_bytes
        ):
            change = next(source, None)
            if change is None:
                return
            grouping.add(change)

    def _deliver(self, changes: tuple[Change, ...], grouping: Grouping[Change]) -> None:
        delivery, doubt = Delivery(changes, self._backoff), _Doubt(self._guard, self._deadline)
        while (step := delivery.step(self._entropy())) is not None:
            match step:
                case Pause():
                    self.counts.retries += 1
                    self._reporter.report(step)
                    self._sleep(doubt.pause(step))
                case Send():
                    stored = self._send(delivery, step, doubt)
                    self.counts.rows += len(stored)
                    grouping.settle(stored)
        if delivery.rejections:
            raise rejection_error(delivery.rejections)

    def _send(self, delivery: Delivery, step: Send, guard: _Doubt) -> tuple[Change, ...]:
        self.counts.requests += 1
        rows = [change.row for change in step.changes]
        try:
            outcomes = self._client.batch_write(self._table, rows, timeout=self._deadline, before_send=guard.check)
            return delivery.answered(outcomes)
        except TunnelError as error:
            delivery.failed(error)
            return ()


class _Refusals:
    """The refused changes of one write: those that are put up with are passed on, the others end it."""

    def __init__(self, refused: Refused | None) -> None:
        self._refused = refused
        self.most = MAX_REJECTIONS if refused is None else float("inf")
        self.fatal: list[Rejection] = []

    def take(self, rejections: Iterable[Rejection]) -> list[Change]:
        """Changes that are done with, though they are not stored."""
        passed = []
        for rejection in rejections:
            record = rejection.change.record
            if self._refused is None or record is None or not rejection.is_about_the_row:
                self.fatal.append(rejection)
            else:
                self._refused(record, rejection.code, rejection.message)
                passed.append(rejection.change)
        return passed


class _Doubt:
    """The guard of one request after the other, which remembers until when the last one may take effect."""

    def __init__(self, guard: Guard, deadline: float) -> None:
        self._guard = guard
        self._deadline = deadline
        self._until = float("-inf")

    def check(self) -> None:
        self._guard.check()
        self._until = time.monotonic() + self._deadline

    def pause(self, step: Pause) -> float:
        """Seconds to wait before the next request, so that no later change can be overtaken by this one."""
        return max(step.seconds, self._until - time.monotonic()) if step.in_doubt else step.seconds


class _RetryReporter:
    """One warning a minute with the number of tries in between."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._last = float("-inf")
        self._unsaid = 0

    def report(self, pause: Pause) -> None:
        self._unsaid += 1
        now = time.monotonic()
        if now - self._last < WARNING_PAUSE:
            return
        logger.warning(
            "writes to the destination fail and are tried again",
            extra={"action": "write_retried", "table": self._table, "error": pause.code, "retries": self._unsaid},
        )
        self._last = now
        self._unsaid = 0


def _ignore(changes: Iterable[Change]) -> None:
    """Nothing waits for single changes of a wave."""
