"""The worker of a stream: follows a table by shards and leases into one sink.

It is for shards what `worker.worker.TunnelWorker` is for a tunnel, with the same sink, limits, status and metrics: a
shard is shown as a channel, the table of leases as the tunnel, this worker's id as the client.

`drain` finishes what was begun and hands the leases over; `close` leaves them to expire. A drain that takes longer than
`WorkerSettings.drain` is cut off, and the leases that are left expire.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import ExitStack

from ots_tunnel.errors import CodecError, TunnelError
from ots_tunnel.fence import ChannelFence, boottime
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelType
from ots_tunnel.protocol.lifecycle import ClientEvent
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.sinks import Sink
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.decide.completion import own_share_is_done
from ots_tunnel.stream.decide.consumer import State
from ots_tunnel.stream.following.follower import StreamFollower, channel_of
from ots_tunnel.stream.following.gaps import ShardGaps
from ots_tunnel.stream.following.reader import ShardReader
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.following.shard_task import ShardTask
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.lease.lease import WorkerId
from ots_tunnel.stream.shards import ShardId, StreamInfo
from ots_tunnel.stream.sinking.context import ShardContext
from ots_tunnel.stream.sinking.views import SHOWN
from ots_tunnel.stream.sinking.work import SinkWork
from ots_tunnel.worker.context import WorkerContext
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from ots_tunnel.worker.run import WorkerRun
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status.channel_view import ChannelView
from ots_tunnel.worker.status.metrics import WorkerMetrics

logger = logging.getLogger(__name__)


class StreamSinkWorker:
    """Follows the stream of one table into one sink.

    Args:
        client: reads the stream; the caller closes it.
        table: the leases, which any number of workers share.
        sink: opened and closed by `run`.
        settings: `table` is the one that is read, `tunnel_id` and `tunnel_name` name the table of leases, `client_tag`
            is the worker's id, `timeout` and `interval` are the duration of a lease and the time between two renewals.
        follow: times of the rounds; its lease times are those of `settings`.
        clock, entropy: replaced in tests.
    """

    def __init__(
        self,
        client: StreamClient,
        table: LeaseTable,
        sink: Sink,
        settings: WorkerSettings,
        follow: FollowSettings,
        *,
        metrics: WorkerMetrics | None = None,
        clock: Callable[[], float] = boottime,
        entropy: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._settings = settings
        self._me = WorkerId(settings.client_tag)
        self._clock = clock
        self._run = WorkerRun(client, sink, settings, metrics, entropy, self._drain)
        self.status = self._run.status
        self.gaps = ShardGaps(stops=follow.stops_at_gaps, on_gap=self._found_gap)
        self.status.passes_gaps = not follow.stops_at_gaps
        #: Whether a drain was cut off at its limit, so that leases were not handed over.
        self.overdue = False
        self._follower = StreamFollower(client, table, settings.table, self._me, self, follow, clock=clock)
        self._context: WorkerContext | None = None
        #: Open until the stream is found; meanwhile the status shows why calls are repeated.
        self._beginning = ExitStack()
        #: When calls were answered before the rounds began, and when one failed last, by `clock`.
        self._begun_at = self._failed_at = float("-inf")

    def __repr__(self) -> str:
        return f"StreamSinkWorker({self._follower})"

    async def run(self) -> None:
        """Follow until drained or closed.

        Raises:
            SinkRejected: the sink refused records permanently. InvalidTransition: a worker runs once; make a new one.
            TunnelError: see `StreamFollower.run`.
        """
        await self._run.run(self._consume)

    def drain(self) -> None:
        """Stop reading, finish the pages being written, store checkpoints, hand the leases over, end `run`."""
        self._run.drain()

    def close(self) -> None:
        """End `run` at once: writes are abandoned, no checkpoint is stored any more, and the leases expire."""
        self._run.close()

    def interrupt(self) -> None:
        """Drain; a second call closes."""
        self._run.interrupt()

    # What the follower asks for

    def work_on(self, stream: StreamInfo, held: HeldLease, fence: ChannelFence) -> SinkWork:
        """See `following.owner.Owner`."""
        assert self._context is not None, "`run` has begun"
        view = self.status.channels[channel_of(held.shard_id)]
        view.progress = ChannelProgress(view.progress.channel_id, ChannelType.STREAM, error=view.progress.error)
        reader = ShardReader(self._client, stream, held.lease, self.gaps)
        context = ShardContext(
            self._me, held, reader, self._settings, self._context, self.status, end_worker=self._follower.end
        )
        work = SinkWork(context, fence, view.progress)
        view.checkpoint_age = work.checkpoint_age
        return work

    def started(self, stream: StreamInfo) -> None:
        """See `following.owner.Owner`."""
        status = self.status
        self._beginning.close()
        self._begun_at = self._clock()
        status.error = None
        status.client_id = self._me
        status.last_heartbeat = status.wall()
        status.happened(ClientEvent.CONNECTED)
        logger.info("following stream %s", stream.stream_id, extra=self._fields(LogAction.CONNECTED))

    def changed(self, task: ShardTask, before: State) -> None:
        """See `following.owner.Owner`."""
        channels, channel_id = self.status.channels, channel_of(task.shard_id)
        if task.state is not before:
            fields = {**self._fields(LogAction.CHANNEL_STATE), "channel_id": channel_id}
            logger.info("shard: %s -> %s", before.value, task.state.value, extra=fields)
        if task.state.is_over:
            channels.pop(channel_id, None)
            if task.state is State.HANDED_OVER:
                self._run.metrics.handed_over("given")
            return
        self.status.completed = False  # until the next look
        shown = SHOWN[task.state]
        view = channels.get(channel_id)
        if view is None:
            view = channels[channel_id] = ChannelView(ChannelProgress(channel_id, ChannelType.STREAM), shown)
        view.status = shown
        if task.state is State.FINISHED:
            view.progress.finished = True

    def call_failed(self, error: TunnelError) -> None:
        """See `following.owner.Owner`."""
        self.status.error = f"{type(error).__name__}: {error}"  # until a later call is answered
        self._failed_at = self._clock()
        fields = {**self._fields(LogAction.LEASE_CALL_FAILED), "error": str(error)}
        is_row = isinstance(error, CodecError)
        what = "a row is no lease, or an answer cannot be read" if is_row else "a call about leases or shards failed"
        logger.warning(what, extra=fields)

    def _found_gap(self, shard_id: ShardId, gap: Gap) -> None:
        self.status.possible_gaps[channel_of(shard_id)] = gap
        self._run.metrics.possible_gap()

    def _drain(self, is_first: bool) -> None:
        if is_first:
            asyncio.get_running_loop().call_later(self._settings.drain, self._cut_off)
        self._run.start.drain(0)
        self._follower.stop()

    def _cut_off(self) -> None:
        self.overdue = self._run.cut_off() or self.overdue

    async def _consume(self, context: WorkerContext) -> None:
        if self._run.order.is_given:
            return
        self._context = context
        sampling = asyncio.create_task(self._sample(), name="samples")
        try:
            with self._beginning as beginning:
                beginning.enter_context(self._run.start.showing_repeats())
                await self._run.unless_closed(self._follower.run(), "stream follower")
        finally:
            sampling.cancel()

    async def _sample(self) -> None:
        """Fill the windows of the rates, and show when a call about leases was answered last, if not too long ago."""
        status = self.status
        while True:
            await asyncio.sleep(self._settings.interval)
            status.sample()
            answered = max(self._begun_at, self._follower.answered)
            silence = self._clock() - answered
            status.last_heartbeat = None if silence > self._settings.timeout else status.wall() - silence
            if self._failed_at < answered:
                status.error = None
            if self._settings.end_us is not None:
                self._look_at_end()

    def _look_at_end(self) -> None:
        """Whether this worker has nothing left to read before the end time."""
        status, held = self.status, self._follower.shards
        stopped = {shard for shard in held if status.channels[channel_of(shard)].progress.end_reached}
        before = status.completed
        status.completed = own_share_is_done(
            self._me, self._follower.leases, held.keys(), stopped, self._follower.listed
        )
        if status.completed and not before:
            logger.info("nothing is left to read here", extra=self._fields(LogAction.COMPLETED))

    def _fields(self, action: LogAction) -> dict[str, object]:
        return {**self._run.log_fields(action), "client_id": self._me}
