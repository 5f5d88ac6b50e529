"""One channel on this worker: the shell around its state machine.

Every event of a channel goes through one queue and is handled in order (docs/protocol.md 6.1, G13). The machine in
`protocol.channel` decides; this module reads the checkpoint, runs the pipeline, stores checkpoints, and feeds back
what became of it. No end is fed while a write may still take effect.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from ots_tunnel.client.tunnel import Page, TunnelClient
from ots_tunnel.errors import OwnershipLost, ResourceGone, SinkRejected, TunnelError, TunnelExpired, first_error
from ots_tunnel.fence import Fence
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import FINISHED, Channel, Checkpoint, ClientId, Token
from ots_tunnel.protocol import channel as machine
from ots_tunnel.protocol.token import channel_type
from ots_tunnel.worker.checkpointer import Checkpointer
from ots_tunnel.worker.context import Shared
from ots_tunnel.worker.cursor import ChannelCursor
from ots_tunnel.worker.pipeline import Pipeline
from ots_tunnel.worker.progress import ChannelProgress
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status import ChannelView, WorkerStatus

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all channels of one client share.

    Args:
        news: a channel has something to report: the next heartbeat may come early.
        ended_by: told of an error that no client can mend; the worker ends.
    """

    client: TunnelClient
    client_id: ClientId
    settings: WorkerSettings
    fence: Fence
    shared: Shared
    status: WorkerStatus
    news: Callable[[], None]
    ended_by: Callable[[TunnelError], None]


class ChannelTask:
    """Runs one channel until it is closed; `run` is its task, everything else is called from the session.

    Args:
        previous: what this client last had of the channel. Its error stays visible until a page is confirmed, and
            while a write of it may still take effect nothing is read again, and the channel is not handed back.
    """

    def __init__(self, around: Surroundings, channel: Channel, previous: ChannelTask | None = None) -> None:
        self._around = around
        self._connection = machine.Connection(channel)
        self._events: asyncio.Queue[machine.Event] = asyncio.Queue()
        self._fence = around.fence.channel(channel.channel_id)
        settings = around.settings
        ids = (settings.tunnel_id, around.client_id, channel.channel_id)
        self._cursor = ChannelCursor(around.client, ids, timeout=settings.write_deadline, guard=self._fence)
        self._checkpointer: Checkpointer | None = None
        self._pipeline: Pipeline | None = None
        self._work: asyncio.Task[None] | None = None
        self._limit: asyncio.Timeout | None = None
        self._stopping = False
        kind = channel_type(channel.channel_id, FINISHED)  # until the token says it
        error = previous.progress.error if previous is not None else None
        self.progress: ChannelProgress = ChannelProgress(channel.channel_id, kind, error=error)

    def __repr__(self) -> str:
        return f"ChannelTask({self.channel.channel_id}, {self._connection.state.value})"

    @property
    def channel(self) -> Channel:
        """The channel as the next heartbeat carries it."""
        return self._connection.channel

    @property
    def is_over(self) -> bool:
        """Whether nothing runs any more; CLOSE or TERMINATED is reported or about to be."""
        return self._connection.is_over and (self._work is None or self._work.done())

    @property
    def doubt(self) -> float:
        """Seconds for which a write of ours may still take effect; 0 when none may."""
        return self._fence.in_doubt

    def feed(self, event: machine.Event) -> None:
        """Hand an event to the machine, after all earlier ones."""
        if isinstance(event, machine.Vanished):
            self._fence.revoke()  # at once: the queue may be behind
        self._events.put_nowait(event)

    async def run(self) -> None:
        """Handle events until cancelled; the pipeline runs beside it."""
        status = self._around.status.channels
        view = ChannelView(self.progress, self.channel.status, self._checkpoint_age)
        status[self.channel.channel_id] = view
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    event = await self._events.get()
                    self._handle(event, tasks)
                    view.status = self.channel.status
                    if isinstance(event, machine.Vanished):
                        break
        finally:
            if status.get(self.channel.channel_id) is view:
                del status[self.channel.channel_id]

    def _handle(self, event: machine.Event, tasks: asyncio.TaskGroup) -> None:
        before = self._connection.state
        self._connection, effects = machine.step(self._connection, event)
        if self._connection.state is not before:
            self._log(LogAction.CHANNEL_STATE, f"{before.value} -> {self._connection.state.value}")
        if isinstance(event, machine.Notified) and self._connection.state is machine.State.CLOSING is not before:
            self._around.shared.metrics.handed_over("given")
        for effect in effects:
            match effect:
                case machine.StartPipeline():
                    name = f"channel {self.channel.channel_id}"
                    self._work = tasks.create_task(self._run_pipeline(), name=name)
                case machine.StopPipeline(reason):
                    self._stop(reason)
                case machine.Report():
                    # A failed channel waits for the regular beat, so that failing again and again stays slow.
                    if self._connection.state is not machine.State.FAILED or self._stopping:
                        self._around.news()

    def _stop(self, reason: machine.StopReason) -> None:
        self._stopping = True
        if reason is machine.StopReason.OWNERSHIP_LOST:
            self._fence.revoke()
            if self._work is not None:
                self._work.cancel()
            return
        if self._pipeline is not None:
            self._pipeline.stop()
        elif self._work is not None and not self._work.done() and not self.doubt:
            # The checkpoint is still being read: nothing was begun that had to be finished.
            self._work.cancel()
            self.feed(machine.PipelineStopped())
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time() + self._around.settings.abandon_after)

    async def _run_pipeline(self) -> None:
        try:
            finished = await self._consume()
        except TunnelError as error:
            self._fail(error)
            await self._keep_progress(error)
            outcome: machine.Event = self._failed()
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and self._is_cancelled():
                raise
            # A bug in one channel must neither stop the others nor go unseen.
            logger.exception("channel failed unexpectedly", extra=self._extra(LogAction.CHANNEL_FAILED))
            self.progress.error = f"{type(error).__name__}: {error}"
            outcome = self._failed()
        else:
            outcome = machine.PipelineFinished() if finished else machine.PipelineStopped()
        if doubt := self.doubt:
            # It may still take effect: nobody may be told that the channel is free before D is over.
            self._log(LogAction.CHANNEL_ABANDONED, "write abandoned")
            await asyncio.sleep(doubt)
        self.feed(outcome)

    def _failed(self) -> machine.Event:
        return machine.PipelineFailed() if self._pipeline is not None else machine.ConnectFailed()

    def _is_cancelled(self) -> bool:
        # Without being told, a cancellation is a sink's own.
        return self._work is None or self._work.cancelling() > 0

    async def _consume(self) -> bool:
        if doubt := self.doubt:
            await asyncio.sleep(doubt)
        if self._stopping:
            return False
        start = await self._open()
        around, checkpointer = self._around, self._checkpointer
        assert checkpointer is not None
        self._pipeline = Pipeline(
            self.progress,
            start.token,
            read=self._read,
            fence=self._fence,
            confirmed=checkpointer.confirmed,
            shared=around.shared,
        )
        self.feed(machine.Connected())
        finished = False
        try:
            async with asyncio.timeout(None) as self._limit, asyncio.TaskGroup() as tasks:
                storing = tasks.create_task(checkpointer.run(), name=f"checkpoint {self.channel.channel_id}")
                finished = await self._pipeline.run()
                storing.cancel()
        except TimeoutError:
            pass  # the drain's limit: what was being written is abandoned unconfirmed
        except BaseExceptionGroup as group:
            raise first_error(group) from group
        finally:
            self._limit = None
            self._fence.abandon_write()
        await checkpointer.flush_within(around.settings.write_deadline if self._stopping else around.settings.timeout)
        self.progress.finished = finished
        if finished:
            self._log(LogAction.CHANNEL_FINISHED, "read to its end")
        return finished

    async def _read(self, token: Token) -> Page:
        page = await self._cursor.read(token)
        self._around.shared.metrics.decoded(self.progress.channel_type, page.decode_seconds)
        return page

    async def _open(self) -> Checkpoint:
        start = await self._cursor.get()
        self.progress.channel_type = channel_type(self.channel.channel_id, start.token)
        if start.sequence_number > 0:
            self._around.status.hand_overs += 1
            self._around.shared.metrics.handed_over("taken")
        kind = self.progress.channel_type
        self._checkpointer = Checkpointer(
            self._cursor,
            start,
            self._around.settings.checkpoint_interval,
            on_stored=lambda seconds: self._around.shared.metrics.checkpoint_stored(kind, seconds),
            on_durable=lambda token: self._around.shared.sink.checkpointed(self.channel.channel_id, token),
        )
        self._log(LogAction.CHANNEL_OPENED, f"at sequence number {start.sequence_number}")
        return start

    def _fail(self, error: TunnelError) -> None:
        self.progress.error = f"{type(error).__name__}: {error}"
        extra = {**self._extra(LogAction.CHANNEL_FAILED), "error": self.progress.error}
        match error:
            case SinkRejected() | TunnelExpired():
                logger.error("channel failed for good", extra=extra)
                self._around.ended_by(error)
            case OwnershipLost() | ResourceGone():
                logger.warning("channel is no longer ours", extra=extra)
                self._around.news()
            case _:
                logger.error("channel failed", extra=extra)

    async def _keep_progress(self, error: TunnelError) -> None:
        # What was confirmed before the failure need not be repeated, unless somebody else may be at it by now.
        if self._checkpointer is None or isinstance(error, OwnershipLost | ResourceGone):
            return
        try:
            await self._checkpointer.flush()
        except TunnelError as again:
            logger.warning(
                "progress before the failure is not durable",
                extra={**self._extra(LogAction.CHECKPOINT_FAILED), "error": str(again)},
            )

    def _checkpoint_age(self) -> float:
        return self._checkpointer.age() if self._checkpointer is not None else 0.0

    def _log(self, action: LogAction, detail: str) -> None:
        level = logging.WARNING if action == LogAction.CHANNEL_ABANDONED else logging.INFO
        logger.log(level, "channel: %s", detail, extra=self._extra(action))

    def _extra(self, action: LogAction) -> dict[str, object]:
        return {
            "action": action,
            "tunnel_id": self._around.settings.tunnel_id,
            "client_id": self._around.client_id,
            "channel_id": self.channel.channel_id,
        }
