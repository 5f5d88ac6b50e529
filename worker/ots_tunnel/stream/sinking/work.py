"""The work on one shard whose records go to a sink: the consumption of a channel."""

from __future__ import annotations

from ots_tunnel.fence import ChannelFence
from ots_tunnel.protocol import channel as machine
from ots_tunnel.stream.decide.consumer import Event
from ots_tunnel.stream.following.work import Report
from ots_tunnel.stream.sinking.context import ShardContext
from ots_tunnel.worker.channel.consumption import Consumption
from ots_tunnel.worker.progress.channel_progress import ChannelProgress


class SinkWork:
    """Moves a shard's records to the sink, and its confirmed positions into the lease.

    Args:
        progress: figures of the shard, new ones for each work.
    """

    def __init__(self, context: ShardContext, fence: ChannelFence, progress: ChannelProgress) -> None:
        self._consumption = Consumption(context, fence, progress, on_connected=self._opened)
        self._progress = progress
        self._report: Report | None = None

    def __repr__(self) -> str:
        return f"SinkWork({self._consumption})"

    @property
    def has_moved(self) -> bool:
        """Whether a page was confirmed."""
        return self._progress.consumed_up_to is not None

    def checkpoint_age(self) -> float:
        """Seconds for which confirmed progress has not been durable; 0 when all is."""
        return self._consumption.checkpoint_age()

    def stop(self) -> None:
        """Finish the page being written, store the checkpoint, end."""
        self._consumption.stop()

    async def run(self, report: Report) -> Event:
        """See `ShardWork.run`. The last checkpoint of a shard is SHARD_END, so the consumption stores it."""
        self._report = report
        match await self._consumption.run():
            case machine.PipelineFinished():
                report(Event.END_REACHED)
                return Event.ENDED
            case machine.PipelineStopped():
                return Event.DRAINED
        return Event.FAILED

    def _opened(self) -> None:
        assert self._report is not None, "run has begun"
        self._report(Event.OPENED)
