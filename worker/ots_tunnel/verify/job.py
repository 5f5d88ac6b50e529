"""A comparison as a job: slices compared in parallel, with a recheck of rows that differ.

Theory of operation
-------------------

The table is cut into slices of key ranges (`slices`). A state (`state`) knows which slices there are, which of them the
sample takes, and the counts of the finished ones; the job compares the rest. The parts:

    lanes       `parallel` tasks (4 by default) that take the next slice and compare it with two scans (`scan`)
    suspects    rows of a slice that differ at the first look
    recheck     reads the suspects again after `recheck_seconds` and counts only those that still differ

Without a recheck (`recheck_seconds` 0) a difference counts immediately. With a recheck a difference at the first look
means little, because the worker that follows the table may be a few seconds late. So the cases of one slice are, by
priority:

1. No row differs: the slice is finished.
2. Rows differ: the slice waits for its recheck, and its lane takes the next slice meanwhile. At most
   `WAITING_SLICES` (16) slices wait; then the lanes pause. This bounds the memory for suspects.
3. `MOST_SUSPECTS` (10,000) rows of one slice differ: the lane itself rechecks them before it reads on. Such a slice is
   usually one that the copy has not reached, and remembering all its keys would need unbounded memory.

A recheck reads up to `READ_ONE_BY_ONE` (16) suspects one by one and more of them in one scan from the first to the
last. Rows in between that changed a moment ago do not count, because they were equal at the first look.

A slice is finished only after its recheck, so that the state never holds a result that a resumed run would have to
revise. A run that ends early loses the slices it was comparing, at most `parallel` + `WAITING_SLICES` of them.

Example: `--recheck 30`, 100 slices. Slice 7 has 3 differing rows. Its lane takes slice 8. After 30 s the three rows
are read again: one is equal now and counts as settled, two differ and count as differences. Slice 7 is finished, and
the state file is written.
"""

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

#: Slices that may wait for their recheck; at this number no lane takes another slice. Own choice: four per lane.
WAITING_SLICES = 16


class VerifyJob:
    """Compares the slices that a state lists as waiting.

    Args:
        source: first table.
        destination: second table.
        state: names the slices and receives their results.
        time_to_live: of the source, seconds; -1 means that cells never expire. What a destination hides that it should
            keep as long is a difference.
        parallel: slices scanned in parallel.
        changed: called after each finished slice.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        source: Side,
        destination: Side,
        state: VerifyState,
        *,
        time_to_live: int = -1,
        parallel: int = 4,
        changed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source = source
        self._destination = destination
        self._state = state
        self._time_to_live = time_to_live
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
        """Compare every waiting slice.

        Raises:
            ServiceError, TransportError: a scan failed permanently.
            CodecError: an answer is malformed.
            ConfigError: the state cannot be stored.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for lane in range(min(self._parallel, len(self._waiting))):
                    group.create_task(self._lane(group), name=f"verify-{lane}")
        except ExceptionGroup as errors:
            # The first error explains the end; the other lanes met the same one or were cancelled.
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
        """Compare a slice; with `recheck_seconds` 0, differences count immediately."""
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
        return ScanPair(a, b, result, differs, lambda: near_expiry_limit((self._time_to_live,), self._clock()))

    def _finish(self, number: int, result: Comparison) -> None:
        self._state.finish(number, result)
        self.meter.slices_done += 1
        self.meter.differences += result.differences
        self._changed()
