"""What the consumption of a shard needs of its worker: the part of a tunnel's client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ots_tunnel.errors import TunnelError
from ots_tunnel.fence import ChannelFence
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.stream.following.reader import ShardReader
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.lease.lease import WorkerId
from ots_tunnel.stream.sinking.cursor import ShardCursor
from ots_tunnel.worker.context import WorkerContext
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status.worker_status import WorkerStatus


@dataclass(frozen=True, slots=True)
class ShardContext:
    """One held lease as the consumption sees it; see `worker.context.ConsumerContext`."""

    me: WorkerId
    held: HeldLease
    reader: ShardReader
    settings: WorkerSettings
    worker: WorkerContext
    status: WorkerStatus
    end_worker: Callable[[TunnelError], None]

    @property
    def beat_soon(self) -> Callable[[], None]:
        """The next renewal tells; it is not far."""
        return lambda: None

    def cursor(self, channel_id: ChannelId, fence: ChannelFence) -> ShardCursor:
        """The shard's calls. The condition of a checkpoint fences it, so it leaves no doubt."""
        return ShardCursor(self.reader, self.held)

    def channel_type(self, channel_id: ChannelId, token: Token) -> ChannelType:
        """A shard is a part of the stream."""
        return ChannelType.STREAM

    def taken_over(self) -> None:
        """Count a shard that was read before."""
        self.status.hand_overs += 1
        self.worker.metrics.handed_over("taken")

    def log_fields(self, action: LogAction, channel_id: ChannelId) -> dict[str, object]:
        """The fields of a log line about one shard."""
        return {"action": action, **self.log_ids(channel_id)}

    def log_ids(self, channel_id: ChannelId) -> dict[str, str]:
        """The ids that a log line about one shard carries."""
        return {"tunnel_id": self.settings.tunnel_id, "client_id": self.me, "channel_id": channel_id}
