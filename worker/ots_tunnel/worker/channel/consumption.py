"""Consumes one channel once: from its checkpoint to its end, to an error, or to the order to stop.

Theory of operation. `Consumption.run` is the task that the channel's state machine starts; its result is the event
that the machine takes next. The steps:

1. Wait until no earlier write of this client to the channel can take effect any more.
2. Read the checkpoint, find out what was consumed before (`Opening`), and report `Connected`.
3. Run the pipeline; beside it the checkpointer stores confirmed progress, once per checkpoint interval. A channel that
   has reached the end time is held without reading until the order to stop.
4. Store the last checkpoint. A try that fails is repeated for D behind an order to stop, because the service waits for
   the channel, but no longer than until a write would be abandoned; for the heartbeat timeout otherwise.
5. Wait until an abandoned write cannot take effect any more. Nothing is reported before (docs/architecture.md rule 3).

`stop` acts on the step that runs. Step 1 is finished, and no other step follows. The call of step 2 is cancelled. The
pipeline of step 3 finishes its page; a write that is unfinished after `WorkerSettings.abandon_after` is abandoned
unconfirmed. The tries of step 4 get their shorter limit.

Where the service has dropped the records that come next, steps 2 to 4 begin once more (`reopening`), and the gap guard
decides whether the channel goes on behind them.

Errors end the steps 2 to 4. Progress confirmed before is stored unless the error means that another client may own the
channel. Any other exception is a bug in this channel or in its sink; it is logged and ends only this channel. When the
channel is taken away, the task is cancelled and there is no event.

This module is the only one that writes a channel's `ChannelProgress`.

Example: D = 16.7 s, drain 45 s. The order to stop comes at 0 s while a write hangs. The write is abandoned at 23.8 s
and in doubt until 40.5 s; then `PipelineStopped` is fed, CLOSE is reported, and the worker ends before 45 s.

Source: docs/protocol.md 5.7, 5.10; docs/architecture.md rules 1 to 4.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ots_tunnel.errors import (
    OwnershipLost,
    ResourceGone,
    TunnelError,
    first_error,
)
from ots_tunnel.fence import ChannelFence, boottime
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import Checkpoint
from ots_tunnel.protocol import channel as machine
from ots_tunnel.worker.cancellation import is_cancelled
from ots_tunnel.worker.channel.failure import report_failure
from ots_tunnel.worker.channel.opening import Opened, Opening
from ots_tunnel.worker.channel.pipeline import Pipeline, PipelineEnd
from ots_tunnel.worker.channel.read_ahead import ChannelStart, ReadAhead
from ots_tunnel.worker.channel.reopening import Reopening
from ots_tunnel.worker.context import ConsumerContext
from ots_tunnel.worker.pages.read_page import ReadPage
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from ots_tunnel.worker.progress.checkpointer import Checkpointer

logger = logging.getLogger(__name__)

#: Shortest wait for the end of a doubt, seconds: a shorter one may be less than the resolution of the loop's clock.
TICK = 0.001


class Consumption:
    """Reads a channel's checkpoint, moves its records and stores its checkpoints.

    Args:
        fence: the channel's.
        progress: figures of the channel, written here.
        on_connected: called when the checkpoint has been read.
    """

    def __init__(
        self, context: ConsumerContext, fence: ChannelFence, progress: ChannelProgress, on_connected: Callable[[], None]
    ) -> None:
        self._context = context
        self._fence = fence
        self._progress = progress
        self._on_connected = on_connected
        self._cursor = context.cursor(progress.channel_id, fence)
        self._opening = Opening(context, progress.channel_id, self._cursor)
        self._checkpointer: Checkpointer | None = None
        self._pipeline: Pipeline | None = None
        self._reopening = Reopening()
        self._stop = asyncio.Event()
        #: Time of the order to stop, by the loop's clock.
        self._stopped_at: float | None = None
        #: Whether the last checkpoint was tried: it is not tried again because that failed.
        self._has_tried_last = False
        #: Limit of step 3, which ends `abandon_after` the order to stop.
        self._moving: asyncio.Timeout | None = None

    def __repr__(self) -> str:
        return f"Consumption({self._progress.channel_id}, {self._pipeline})"

    def checkpoint_age(self) -> float:
        """Seconds for which confirmed progress has not been durable; 0 when all is."""
        return self._checkpointer.age() if self._checkpointer is not None else 0.0

    def stop(self) -> None:
        """Finish the page being written, store the checkpoint, end."""
        self._stop.set()
        now = asyncio.get_running_loop().time()
        if self._stopped_at is None:
            self._stopped_at = now
        self._opening.stop()
        if self._pipeline is not None:
            self._pipeline.stop()
        if self._checkpointer is not None:
            # the page being written may wait for a checkpoint as well
            self._checkpointer.hurry()
            self._checkpointer.give_up_within(self._seconds_for_last())
        if self._moving is not None:
            self._moving.reschedule(now + self._context.settings.abandon_after)

    async def run(self) -> machine.Event:
        """Consume; returns the outcome when no write to the channel can take effect any more.

        Raises:
            CancelledError: the channel was taken away.
        """
        try:
            outcome = await self._consume()
        except TunnelError as error:
            report_failure(self._context, self._progress.channel_id, error)
            await self._keep_progress(error)
            outcome = self._failure(error)
        except (Exception, asyncio.CancelledError) as error:
            # a bug here or in the sink ends this channel alone
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise  # otherwise a sink raised it by itself
            logger.exception("channel failed unexpectedly", extra=self._fields(LogAction.CHANNEL_FAILED))
            outcome = self._failure(error)
        if self._fence.in_doubt:
            logger.warning("channel: write abandoned", extra=self._fields(LogAction.CHANNEL_ABANDONED))
            await self._until_no_doubt()
        return outcome

    async def _consume(self) -> machine.Event:
        await self._until_no_doubt()
        opened = None if self._stop.is_set() else await self._opening.run()
        while opened is not None and not self._stop.is_set():  # it may be set in the round that brings the answer
            end = await self._consume_from(opened)
            if end is PipelineEnd.FINISHED:
                self._progress.finished = True
                logger.info("channel: read to its end", extra=self._fields(LogAction.CHANNEL_FINISHED))
                return machine.PipelineFinished()
            opened = await self._open_again() if end is PipelineEnd.TRIMMED and not self._stop.is_set() else None
        return machine.PipelineStopped()

    async def _open_again(self) -> Opened | None:
        assert self._checkpointer is not None, "it was made before the pipeline"
        refusal, now = None if self._pipeline is None else self._pipeline.refusal, boottime()
        assert refusal is not None, "the pipeline has ended as TRIMMED"
        if not self._reopening.may_open(now):
            raise refusal
        self._reopening = self._reopening.opened(now)
        fields = {**self._fields(LogAction.CHANNEL_FAILED), "error": str(refusal)}
        logger.warning("channel: its next records are dropped, it is opened once more", extra=fields)
        return await self._opening.run(self._checkpointer.stored)

    async def _consume_from(self, opened: Opened) -> PipelineEnd:
        """The steps 3 and 4."""
        start = opened.checkpoint
        kind = self._context.channel_type(self._progress.channel_id, start.token)
        self._progress.channel_type = kind
        self._checkpointer = checkpointer = self._checkpointer_from(start)
        ahead = ReadAhead(
            ChannelStart(self._progress.channel_id, kind, start.token, opened.gaps),
            self._cursor,
            self._context.worker,
            on_read=self._progress.page_read,
        )
        self._has_tried_last = False
        is_first = self._pipeline is None
        self._pipeline = pipeline = Pipeline(
            ahead, self._context.worker, self._fence, self._page_confirmed, checkpointer.hurry
        )
        if is_first:
            self._on_connected()
        end = await self._move(pipeline, checkpointer)
        await self._store_last(checkpointer)
        return end

    async def _store_last(self, checkpointer: Checkpointer) -> None:
        """Step 4. The last try begins before a write would be abandoned, and takes at most D as that write does."""
        self._has_tried_last = True
        await checkpointer.flush_within(self._seconds_for_last(), self._context.settings.write_deadline)

    def _seconds_for_last(self) -> float:
        """How long tries of the last checkpoint are repeated, from now."""
        settings = self._context.settings
        if self._stopped_at is None:
            return settings.timeout
        since = asyncio.get_running_loop().time() - self._stopped_at
        return max(0.0, min(settings.write_deadline, settings.abandon_after - since))

    async def _until_no_doubt(self) -> None:
        while True:
            doubt = self._fence.in_doubt
            if not doubt:
                return
            # and again, where a write of the channel's last time had not even ended
            await asyncio.sleep(max(doubt, TICK))

    def _checkpointer_from(self, start: Checkpoint) -> Checkpointer:
        metrics, sink = self._context.worker.metrics, self._context.worker.sink
        kind, channel_id = self._progress.channel_type, self._progress.channel_id
        return Checkpointer(
            self._cursor,
            start,
            self._context.settings.checkpoint_interval,
            on_stored=lambda seconds: metrics.checkpoint_stored(kind, seconds),
            on_durable=lambda page: sink.checkpointed(channel_id, page),
            log_ids=self._context.log_ids(channel_id),
        )

    async def _move(self, pipeline: Pipeline, checkpointer: Checkpointer) -> PipelineEnd:
        """Run the pipeline and store checkpoints until it ends, or until its write is abandoned."""
        end = PipelineEnd.STOPPED
        try:
            async with asyncio.timeout(None) as limit, asyncio.TaskGroup() as tasks:
                self._moving = limit
                tasks.create_task(checkpointer.run(), name=f"checkpoint {self._progress.channel_id}")
                end = await pipeline.run()
                end_us = self._context.worker.end_us
                if end is PipelineEnd.END_TIME and end_us is not None:
                    self._progress.stopped_at(end_us / 1e6)
                    await self._stop.wait()
                checkpointer.end()
        except TimeoutError:
            if not limit.expired():
                raise
            # The drain's limit: the page being written is abandoned unconfirmed.
        except BaseExceptionGroup as group:
            raise first_error(group) from group
        finally:
            self._moving = None
            self._fence.abandon_write()
        return end

    def _page_confirmed(self, page: ReadPage) -> None:
        assert self._checkpointer is not None, "it was made before the pipeline"
        if page.rows:
            metrics = self._context.worker.metrics
            metrics.confirmed(self._progress.channel_type, page.actions, page.answer.size_bytes)
        self._reopening = self._reopening.confirmed(page.rows)
        self._progress.page_confirmed(page)
        self._checkpointer.confirmed(page.following, page.number)

    def _failure(self, error: BaseException) -> machine.Event:
        self._progress.error = f"{type(error).__name__}: {error}"
        return machine.PipelineFailed() if self._pipeline is not None else machine.ConnectFailed()

    async def _keep_progress(self, error: TunnelError) -> None:
        """Store the progress confirmed before the failure, so that its records are not repeated."""
        if self._checkpointer is None or self._has_tried_last or isinstance(error, OwnershipLost | ResourceGone):
            return
        try:
            await self._checkpointer.flush_within(0, self._context.settings.write_deadline)
        except TunnelError as again:
            logger.warning(
                "progress before the failure is not durable",
                extra={**self._fields(LogAction.CHECKPOINT_FAILED), "error": str(again)},
            )

    def _fields(self, action: LogAction) -> dict[str, object]:
        return self._context.log_fields(action, self._progress.channel_id)
