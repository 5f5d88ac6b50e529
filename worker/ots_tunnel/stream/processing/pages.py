"""Gives the pages of one shard to a processor, until the shard ends or the processor asks for something else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ots_tunnel.protocol.idle_read import IdleReads
from ots_tunnel.protocol.record import Record
from ots_tunnel.stream.decide.consumer import Event
from ots_tunnel.stream.following.first_place import first_place
from ots_tunnel.stream.following.reader import ShardReader
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.lease.lease import SHARD_END, Position
from ots_tunnel.stream.processing.callbacks import ProcessorCalls
from ots_tunnel.stream.processing.checkpointer import RecordProcessorCheckpointer
from ots_tunnel.stream.processing.parts import ProcessorParts
from ots_tunnel.stream.processing.processor import ProcessRecordsInput, RecordProcessor, ShutdownMarker
from ots_tunnel.stream.processing.steps import Steps


class ProcessorPages:
    """The pages of one shard.

    Args:
        marker: what the processor asks for.
    """

    def __init__(
        self,
        parts: ProcessorParts,
        reader: ShardReader,
        held: HeldLease,
        calls: ProcessorCalls,
        steps: Steps,
        marker: ShutdownMarker,
    ) -> None:
        self._parts = parts
        self._reader = reader
        self._held = held
        self._calls = calls
        self._steps = steps
        self._marker = marker
        #: Whether a page was processed.
        self.has_moved = False

    def __repr__(self) -> str:
        return f"ProcessorPages({self._held.shard_id})"

    async def give_all(self, processor: RecordProcessor, checkpointer: RecordProcessorCheckpointer) -> Event:
        """Read pages and give them; returns ENDED, DRAINED, DONE or RESTART.

        Raises:
            OwnershipLost: the lease is lost. ProcessorFailed: the processor raised.
            PossibleGap: changes may be missing. TunnelError: a read or a checkpoint failed.
        """
        idle = IdleReads()
        while True:
            if checkpointer.position == SHARD_END:
                return Event.ENDED
            page = await self._steps.unless_stopped(self._reader.read(checkpointer.position))
            if page is None:
                return Event.DRAINED
            await self._keep_first_place(checkpointer)
            following = SHARD_END if page.next_iterator is None else Position(page.next_iterator)
            if page.records or self._parts.gives_empty_pages:
                await self._give(processor, checkpointer, page.records, following)
                if self._marker.is_done:
                    return Event.DONE
                if self._marker.is_restart:
                    return Event.RESTART
            else:
                checkpointer.permit(following)
            pace = idle.after(rows=len(page.records), size_bytes=page.size_bytes, may_more=page.may_more)
            idle = pace or IdleReads()
            if pace is not None and checkpointer.position != SHARD_END:
                seconds = pace.pause(asyncio.get_running_loop().time(), self._parts.entropy())
                await self._steps.unless_stopped(asyncio.sleep(seconds))

    async def _keep_first_place(self, checkpointer: RecordProcessorCheckpointer) -> None:
        """Store where the first page begins, for a processor that stores no checkpoint before the stream drops it."""
        if first_place(self._reader, self._held) is None:
            return
        await checkpointer.settled()  # what the processor's own threads have begun to store counts more
        place = first_place(self._reader, self._held)
        if place is not None:
            await self._held.store(place)
            checkpointer.permit(place)  # what is permitted before the first page is its place, too

    async def _give(
        self,
        processor: RecordProcessor,
        checkpointer: RecordProcessorCheckpointer,
        records: Sequence[Record],
        following: Position,
    ) -> None:
        before = checkpointer.position
        checkpointer.permit(following)
        try:
            given = ProcessRecordsInput(records, checkpointer, self._marker)
            await self._calls.call("process_records", processor.process_records, given)
            await checkpointer.settled()
        except BaseException:
            # The processor may not have processed them, unless it has stored that it has.
            reached = checkpointer.position
            is_unsaid = reached == following != self._held.lease.checkpoint
            checkpointer.permit(before if is_unsaid else reached)
            raise
        if not self.has_moved:
            self.has_moved = True
            self._parts.on_failure(self._held.shard_id, None)
