"""The work on one shard that a user's processor processes.

Theory of operation. `run` takes these steps:

1. Wait until no earlier call for the shard has an effect any more, and read the checkpoint.
2. Make a processor, in the thread of the shard, and `initialize` it.
3. Read a page, give it to `process_records`, wait for its checkpoints, and read on where the last one says; without a
   checkpoint, behind the page. A page without records is given as well, and the pauses between such pages grow.
4. `shutdown`, with the reason. At the end of a shard that has to store SHARD_END.

`stop` ends a read or a pause at once, and step 3 after the present call. The processor learns STOLEN, also where the
worker stops: in both cases another worker begins at its checkpoint.

When a method raises, the processor is shut down with PROCESS_RESTART, its permitted checkpoint stands before the
records of that call, and the outcome is FAILED, when nothing that it has sent can take effect any more: after a pause
another processor begins. When the lease is lost, the task is cancelled; the processor learns ZOMBIE, when its call
under way has returned. The task ends when nothing of the processor runs any more.

Example: pages A and B. A is processed and stored. `process_records` raises for B. `shutdown` may store what lies before
B. A second after the doubt about it has ended, a new processor gets B.
"""

from __future__ import annotations

import asyncio
import logging
from uuid import uuid4

from ots_tunnel.errors import OwnershipLost, PossibleGap, ProcessorFailed, TunnelError
from ots_tunnel.fence import ChannelFence
from ots_tunnel.log_actions import LogAction
from ots_tunnel.sinks.python.callbacks import keeping
from ots_tunnel.stream.decide.consumer import Event
from ots_tunnel.stream.following.reader import ShardReader
from ots_tunnel.stream.following.work import Report
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.lease.lease import SHARD_END, TRIM_HORIZON
from ots_tunnel.stream.processing.callbacks import ProcessorCalls
from ots_tunnel.stream.processing.checkpointer import RecordProcessorCheckpointer
from ots_tunnel.stream.processing.pages import ProcessorPages
from ots_tunnel.stream.processing.parts import ProcessorParts
from ots_tunnel.stream.processing.processor import (
    InitializationInput,
    RecordProcessor,
    ShardInfo,
    ShutdownInput,
    ShutdownMarker,
    ShutdownReason,
)
from ots_tunnel.stream.processing.steps import Steps
from ots_tunnel.worker.channel.consumption import TICK

logger = logging.getLogger(__name__)

#: What ends step 3, and the reason that the processor learns.
REASONS = {
    Event.ENDED: ShutdownReason.TERMINATE,
    Event.DRAINED: ShutdownReason.STOLEN,
    Event.DONE: ShutdownReason.PROCESS_DONE,
    Event.RESTART: ShutdownReason.PROCESS_RESTART,
}


class ProcessorWork:
    """Gives the pages of one shard to a processor."""

    def __init__(self, parts: ProcessorParts, reader: ShardReader, held: HeldLease, fence: ChannelFence) -> None:
        self._parts = parts
        self._held = held
        self._fence = fence
        self._calls = ProcessorCalls(held.shard_id, held.fence, fence, parts.on_hang)
        self._marker = ShutdownMarker()
        self._steps = Steps()
        self._pages = ProcessorPages(parts, reader, held, self._calls, self._steps, self._marker)
        #: Whether the processor was told of its end.
        self._told = False

    def __repr__(self) -> str:
        return f"ProcessorWork({self._held.shard_id})"

    @property
    def has_moved(self) -> bool:
        """Whether a page was processed."""
        return self._pages.has_moved

    def stop(self) -> None:
        """Finish the present call, shut the processor down, end."""
        self._steps.stop()

    async def run(self, report: Report) -> Event:
        """See `ShardWork.run`."""
        try:
            return await self._process(report)
        except Exception as raised:
            # a bug of the processor, or of this module, ends the work on this shard alone
            error = raised if isinstance(raised, TunnelError) else ProcessorFailed(f"{type(raised).__name__}: {raised}")
            fields = {"channel_id": self._held.shard_id, "error": f"{type(error).__name__}: {error}"}
            trace = None if error is raised else raised
            logger.error("shard failed", extra={"action": LogAction.CHANNEL_FAILED, **fields}, exc_info=trace)
            self._parts.on_failure(self._held.shard_id, error)
            if isinstance(error, PossibleGap) or (isinstance(error, ProcessorFailed) and not self._parts.restarts):
                self._parts.end_worker(error)
            await self._until_no_doubt()
            return Event.FAILED
        finally:
            self._calls.close()

    async def _process(self, report: Report) -> Event:
        await self._until_no_doubt()
        position = await self._steps.unless_stopped(self._held.settle())
        if position is None:
            return Event.DRAINED
        checkpointer = RecordProcessorCheckpointer(self._held, position or TRIM_HORIZON)
        processor = await self._made(checkpointer)
        try:
            outcome = await self._use(processor, checkpointer, report)
        except BaseException as error:
            await self._leave(processor, checkpointer, error)
            raise
        checkpointer.close()
        return outcome

    async def _made(self, checkpointer: RecordProcessorCheckpointer) -> RecordProcessor:
        """A new processor: what it takes to make one must keep no lease from being renewed.

        One that is made too late is shut down at once.
        """
        made: list[RecordProcessor] = []
        try:
            await self._calls.make("create_processor", keeping(self._parts.factory.create_processor, made))
        except BaseException as error:
            try:
                await self._calls.idle()
            finally:  # also where the loss of the lease cancels the wait
                if made:
                    await self._leave(made[0], checkpointer, error)
            raise
        return made[0]

    async def _use(
        self, processor: RecordProcessor, checkpointer: RecordProcessorCheckpointer, report: Report
    ) -> Event:
        lease = self._held.lease
        info = ShardInfo(lease.shard_id, lease.stream_id, lease.parents, uuid4().hex)
        await self._calls.call(
            "initialize",
            processor.initialize,
            InitializationInput(info, checkpointer.position, checkpointer, self._marker),
        )
        await checkpointer.settled()  # the first page is read where it puts the shard
        report(Event.OPENED)
        outcome = await self._pages.give_all(processor, checkpointer)
        if outcome is Event.ENDED:
            report(Event.END_REACHED)
            checkpointer.permit(SHARD_END)
        self._told = True
        await self._calls.call("shutdown", processor.shutdown, ShutdownInput(REASONS[outcome], checkpointer))
        await checkpointer.settled()
        if outcome is Event.ENDED and not self._held.lease.is_finished:
            raise ProcessorFailed(
                f"shutdown stored no checkpoint at the end of shard {self._held.shard_id}: found "
                f"{self._held.lease.checkpoint!r}, needed is {SHARD_END}, or its children never start"
            )
        return outcome

    async def _leave(
        self, processor: RecordProcessor, checkpointer: RecordProcessorCheckpointer, error: BaseException
    ) -> None:
        """Shut a processor down whose work has ended too early; what it raises then is logged only."""
        try:
            await self._calls.idle()
        finally:  # as in `_made`: the fence may close first, and the lease be lost while a call under way returns
            await self._shut_down(processor, checkpointer, error)

    async def _shut_down(
        self, processor: RecordProcessor, checkpointer: RecordProcessorCheckpointer, error: BaseException
    ) -> None:
        if self._told:
            checkpointer.close()
            return
        is_held = isinstance(error, Exception) and not isinstance(error, OwnershipLost) and self._may_write()
        reason = ShutdownReason.PROCESS_RESTART if is_held else ShutdownReason.ZOMBIE
        if not is_held:
            checkpointer.close()
        call = self._calls.call if is_held else self._calls.last
        try:
            await call("shutdown", processor.shutdown, ShutdownInput(reason, checkpointer))
        except Exception as again:
            # what has ended the work counts, not what a processor raises on its way out
            fields = {"channel_id": self._held.shard_id, "error": str(again)}
            logger.warning("a processor's shutdown raised", extra={"action": LogAction.PROCESSOR_FAILED, **fields})
        finally:
            checkpointer.close()
            await self._calls.idle()  # also where the lease has ended the call

    def _may_write(self) -> bool:
        try:
            self._fence.check()
        except OwnershipLost:
            return False
        return True

    async def _until_no_doubt(self) -> None:
        while True:
            doubt = self._fence.in_doubt
            if not doubt:
                return
            await asyncio.sleep(max(doubt, TICK))
