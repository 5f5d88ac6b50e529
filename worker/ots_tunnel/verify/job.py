"""A comparison as a job: which slices there are, and slices compared side by side."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ots_tunnel.client.table_calls import DEFAULT_SPLIT_UNIT_BYTES, KeyRange, TableDescription
from ots_tunnel.errors import first_error
from ots_tunnel.model import PrimaryKey
from ots_tunnel.verify.comparison import Comparison
from ots_tunnel.verify.expiry import doubtful_until
from ots_tunnel.verify.recheck import MOST_SUSPECTS, SecondLook, Suspects, ranges_of
from ots_tunnel.verify.slices import Differs, PairOfScans, ReadsTable, Scan, note_in
from ots_tunnel.verify.state import VerifyState

#: Unit of small slices, bytes; the least that the service accepts (docs/data-plane.md 2.7).
SMALL_UNIT_BYTES = 1_048_576

#: Small slices are of so many units; a sample's are of one, so that there is something to choose from.
UNITS_PER_SLICE = 8

#: Slices of 100 MB from which on a table is not cut into small ones: their list would be long.
ENOUGH_SLICES = 400

#: Slices from which on they are made larger: their list is part of every write of the state.
MOST_SLICES = 10_000

#: Slices that wait for a second look; beyond it no further slice is begun.
WAITING_SLICES = 16


class DescribesTable(ReadsTable, Protocol):
    """The part of `TableClient` that a job needs."""

    async def describe_table(self, table: str) -> TableDescription:
        """See `TableClient.describe_table`."""
        ...


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two tables and who reads it."""

    client: DescribesTable
    table: str

    async def describe(self) -> TableDescription:
        """Keys and options of the table."""
        return await self.client.describe_table(self.table)

    async def slices(self, *, sampled: bool) -> tuple[KeyRange, ...]:
        """The table in slices of 100 MB; small ones where these would be few, larger ones where they are many."""
        slices = await self.client.compute_splits(self.table, 1, unit_bytes=DEFAULT_SPLIT_UNIT_BYTES)
        if len(slices) > MOST_SLICES:
            units = -(-len(slices) // MOST_SLICES)
            return await self.client.compute_splits(self.table, units, unit_bytes=DEFAULT_SPLIT_UNIT_BYTES)
        if len(slices) >= ENOUGH_SLICES:
            return slices
        units = 1 if sampled and len(slices) < ENOUGH_SLICES // UNITS_PER_SLICE else UNITS_PER_SLICE
        return await self.client.compute_splits(self.table, units, unit_bytes=SMALL_UNIT_BYTES)

    def scan(self, part: KeyRange, max_versions: int) -> Scan:
        """A scan of a part of the table."""
        return Scan(self.client, self.table, part, max_versions)


async def cut_tables(source: Side, destination: Side, *, sampled: bool) -> tuple[PrimaryKey, ...]:
    """Ends of the slices: those of the table that has more, so that neither has all its rows in one.

    Raises:
        ServiceError, TransportError: a call failed for good.
    """
    slices = max(await source.slices(sampled=sampled), await destination.slices(sampled=sampled), key=len)
    return (slices[0].start, *(part.end for part in slices))


@dataclass(slots=True)
class Meter:
    """How far a job is: rows and slices of this run and of all runs, rows that wait for a second look."""

    slices: int = 0
    slices_done: int = 0
    slices_before: int = 0
    rows: int = 0
    rows_before: int = 0
    differences: int = 0
    suspects: int = 0


class VerifyJob:
    """Compares what a state still has to do.

    Args:
        source: first table.
        destination: second table.
        state: slices are taken from it and their results given to it.
        times_to_live: seconds, of both tables.
        parallel: slices scanned at the same time.
        changed: called when a slice is done.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        source: Side,
        destination: Side,
        state: VerifyState,
        *,
        times_to_live: tuple[int, int] = (-1, -1),
        parallel: int = 4,
        changed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source = source
        self._destination = destination
        self._state = state
        self._times_to_live = times_to_live
        self._parallel = parallel
        self._changed = changed
        self._clock = clock
        self._waiting = deque(state.waiting)
        self._room = asyncio.Semaphore(WAITING_SLICES)
        done = state.total()
        self.meter = Meter(
            slices=len(state.chosen),
            slices_done=len(state.done),
            slices_before=len(state.done),
            rows=done.rows,
            rows_before=done.rows,
            differences=done.differences,
        )

    async def run(self) -> Comparison:
        """Compare every slice that is not done.

        Raises:
            ServiceError, TransportError: a scan failed for good.
            CodecError: an answer is malformed.
            ConfigError: the state cannot be stored.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for lane in range(min(self._parallel, len(self._waiting))):
                    group.create_task(self._lane(group), name=f"verify-{lane}")
        except ExceptionGroup as errors:
            # One is enough to say why it ends; the other lanes met the same or were stopped.
            raise first_error(errors) from None
        return self._state.total()

    async def _lane(self, group: asyncio.TaskGroup) -> None:
        while self._waiting:
            number = self._waiting.popleft()
            result, suspects = Comparison(keep=self._state.task.show), Suspects()
            await self._first_look(self._state.slice(number), result, suspects)
            if not suspects:
                self._finish(number, result)
                continue
            await self._room.acquire()
            group.create_task(self._last_look(number, result, suspects), name=f"second-look-{number}")

    async def _first_look(self, part: KeyRange, result: Comparison, suspects: Suspects) -> None:
        """Compare a slice; without a pause for second looks nobody is suspect, what differs counts at once."""
        differs = suspects.differs if self._state.task.recheck_seconds else note_in(result)
        pair = self._pair(part, result, differs)
        try:
            rows = 0
            while await pair.step():
                self.meter.rows += result.rows - rows
                rows = result.rows
                if len(suspects) >= MOST_SUSPECTS:
                    await self._look_again(result, suspects)
        finally:
            await pair.close()

    async def _last_look(self, number: int, result: Comparison, suspects: Suspects) -> None:
        try:
            await self._look_again(result, suspects)
        finally:
            self._room.release()
        self._finish(number, result)

    async def _look_again(self, result: Comparison, suspects: Suspects) -> None:
        keys = suspects.take()
        self.meter.suspects += len(keys)
        await asyncio.sleep(self._state.task.recheck_seconds)
        second = SecondLook(keys, result)
        for part in ranges_of(keys):
            pair = self._pair(part, Comparison(), second.differs)
            try:
                while await pair.step():
                    pass
            finally:
                await pair.close()
        second.end()
        self.meter.suspects -= len(keys)

    def _pair(self, part: KeyRange, result: Comparison, differs: Differs) -> PairOfScans:
        versions = self._state.task.max_versions
        a, b = self._source.scan(part, versions), self._destination.scan(part, versions)
        return PairOfScans(a, b, result, differs, lambda: doubtful_until(self._times_to_live, self._clock()))

    def _finish(self, number: int, result: Comparison) -> None:
        self._state.finish(number, result)
        self.meter.slices_done += 1
        self.meter.differences += result.differences
        self._changed()
