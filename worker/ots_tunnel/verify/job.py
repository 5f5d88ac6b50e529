"""A comparison as a job: which slices there are, and slices compared side by side."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from ots_tunnel.client.table_calls import KeyRange
from ots_tunnel.errors import first_error
from ots_tunnel.verify.comparison import Comparison
from ots_tunnel.verify.meter import VerifyMeter
from ots_tunnel.verify.recheck import MOST_SUSPECTS, Recheck, Suspects, ranges_of
from ots_tunnel.verify.rows import near_expiry_limit
from ots_tunnel.verify.scan import OnDifference, ScanPair, record_in
from ots_tunnel.verify.slices import Side
from ots_tunnel.verify.state import VerifyState

#: Slices that wait for a second look; beyond it no further slice is begun.
WAITING_SLICES = 16


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
        self.meter = VerifyMeter(
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
            await self._compare_slice(self._state.slice(number), result, suspects)
            if not suspects:
                self._finish(number, result)
                continue
            await self._room.acquire()
            group.create_task(self._recheck_slice(number, result, suspects), name=f"recheck-{number}")

    async def _compare_slice(self, part: KeyRange, result: Comparison, suspects: Suspects) -> None:
        """Compare a slice; without a pause for second looks nobody is suspect, what differs counts at once."""
        differs = suspects.differs if self._state.task.recheck_seconds else record_in(result)
        pair = self._pair(part, result, differs)
        try:
            rows = 0
            while await pair.step():
                self.meter.rows += result.rows - rows
                rows = result.rows
                if len(suspects) >= MOST_SUSPECTS:
                    await self._recheck(result, suspects)
        finally:
            await pair.close()

    async def _recheck_slice(self, number: int, result: Comparison, suspects: Suspects) -> None:
        try:
            await self._recheck(result, suspects)
        finally:
            self._room.release()
        self._finish(number, result)

    async def _recheck(self, result: Comparison, suspects: Suspects) -> None:
        keys = suspects.take()
        self.meter.suspects += len(keys)
        await asyncio.sleep(self._state.task.recheck_seconds)
        recheck = Recheck(keys, result)
        for part in ranges_of(keys):
            pair = self._pair(part, Comparison(), recheck.differs)
            try:
                while await pair.step():
                    pass
            finally:
                await pair.close()
        recheck.end()
        self.meter.suspects -= len(keys)

    def _pair(self, part: KeyRange, result: Comparison, differs: OnDifference) -> ScanPair:
        versions = self._state.task.max_versions
        a, b = self._source.scan(part, versions), self._destination.scan(part, versions)
        return ScanPair(a, b, result, differs, lambda: near_expiry_limit(self._times_to_live, self._clock()))

    def _finish(self, number: int, result: Comparison) -> None:
        self._state.finish(number, result)
        self.meter.slices_done += 1
        self.meter.differences += result.differences
        self._changed()
