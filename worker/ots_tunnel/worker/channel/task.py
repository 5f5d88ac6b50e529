"""One channel on this worker: carries out the decisions of the channel's state machine.

Theory of operation. A `ChannelTask` joins three parts:

    protocol.channel   the state machine; pure: (state, event) -> (state, effects)
    Consumption        the work: reads the checkpoint, moves records, stores checkpoints
    ChannelFence       permission to write, and the doubt about writes that were abandoned

Events come from the session (heartbeat answers, the order to drain, the loss of the channel) and from the consumption
(its outcome). All of them pass one queue and are handled one after the other, so that no event sees a half-made
transition (docs/protocol.md 6.1, G13). Each can have these effects:

    StartPipeline                the consumption starts as a task
    StopPipeline, DRAIN          the consumption is asked to finish; its outcome is the next event
    StopPipeline, OWNERSHIP_LOST the fence is revoked and the task cancelled; there is no outcome
    Report                       the channel, with a new status, is carried by the next heartbeat, which comes early

Two exceptions from the order of the queue. A channel that vanished has its fence revoked and its write abandoned at
once, because the queue may be behind and a write must not leave meanwhile. A channel that failed does not hasten the
heartbeat, so that a channel that fails again and again is opened once per interval.

Example: OPEN starts the consumption. CLOSING asks it to finish: it writes its page, stores the checkpoint and ends
with `PipelineStopped`. The machine answers with the report CLOSE, and the task ends when the channel vanishes.

Source: docs/protocol.md 5.6, 5.7; docs/architecture.md rule 3.
"""

from __future__ import annotations

import asyncio
import logging

from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import FINISHED, Channel
from ots_tunnel.protocol import channel as machine
from ots_tunnel.protocol.token import channel_type
from ots_tunnel.worker.channel.consumption import Consumption
from ots_tunnel.worker.context import ClientContext
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from ots_tunnel.worker.status.channel_view import ChannelView

logger = logging.getLogger(__name__)


class ChannelTask:
    """Runs one channel until it vanishes; `run` is its task, everything else is called from the session.

    Args:
        error: the failure that stopped the channel before; visible until a page is confirmed.
    """

    def __init__(self, context: ClientContext, channel: Channel, error: str | None = None) -> None:
        self._context = context
        self._connection = machine.Connection(channel)
        self._events: asyncio.Queue[machine.Event] = asyncio.Queue()
        self._fence = context.fence.channel(channel.channel_id)
        kind = channel_type(channel.channel_id, FINISHED)  # until the checkpoint's token says it
        self.progress: ChannelProgress = ChannelProgress(channel.channel_id, kind, error=error)
        self._consumption = Consumption(
            context, self._fence, self.progress, on_connected=lambda: self.feed(machine.Connected())
        )
        self._work: asyncio.Task[None] | None = None
        self._stopping = False

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

    def feed(self, event: machine.Event) -> None:
        """Queue an event for the machine."""
        if isinstance(event, machine.Vanished):
            self._take_away()
        self._events.put_nowait(event)

    async def run(self) -> None:
        """Handle events until the channel vanishes; the consumption runs beside it."""
        status, channel_id = self._context.status.channels, self.channel.channel_id
        view = ChannelView(self.progress, self.channel.status, self._consumption.checkpoint_age)
        status[channel_id] = view
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    event = await self._events.get()
                    self._handle(event, tasks)
                    view.status = self.channel.status
                    if isinstance(event, machine.Vanished):
                        break
        finally:
            if status.get(channel_id) is view:
                del status[channel_id]

    def _handle(self, event: machine.Event, tasks: asyncio.TaskGroup) -> None:
        before = self._connection.state
        self._connection, effects = machine.step(self._connection, event)
        after = self._connection.state
        if after is not before:
            fields = self._context.log_fields(LogAction.CHANNEL_STATE, self.channel.channel_id)
            logger.info("channel: %s -> %s", before.value, after.value, extra=fields)
        if isinstance(event, machine.Notified) and after is machine.State.CLOSING is not before:
            self._context.worker.metrics.handed_over("given")
        for effect in effects:
            match effect:
                case machine.StartPipeline():
                    self._work = tasks.create_task(self._consume(), name=f"channel {self.channel.channel_id}")
                case machine.StopPipeline(reason):
                    self._stop(reason)
                case machine.Report():
                    if after is not machine.State.FAILED or self._stopping:
                        self._context.beat_soon()

    def _stop(self, reason: machine.StopReason) -> None:
        self._stopping = True
        if reason is machine.StopReason.DRAIN:
            self._consumption.stop()
            return
        self._take_away()

    def _take_away(self) -> None:
        """Let nothing leave any more: close the fence and abandon the write under way, which resets its connection."""
        self._fence.revoke()
        if self._work is not None:
            self._work.cancel()

    async def _consume(self) -> None:
        self.feed(await self._consumption.run())
