"""What a follower needs of the worker that runs it."""

from __future__ import annotations

from typing import Protocol

from ots_tunnel.errors import TunnelError
from ots_tunnel.fence import ChannelFence
from ots_tunnel.stream.decide.consumer import State
from ots_tunnel.stream.following.gaps import ShardGaps
from ots_tunnel.stream.following.shard_task import ShardTask
from ots_tunnel.stream.following.work import ShardWork
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.shards import StreamInfo


class Owner(Protocol):
    """What runs the follower: makes the work, and shows what happens."""

    gaps: ShardGaps

    def work_on(self, stream: StreamInfo, held: HeldLease, fence: ChannelFence) -> ShardWork:
        """New work on a shard."""
        ...

    def started(self, stream: StreamInfo) -> None:
        """Every shard of the stream has a lease, and the rounds begin."""
        ...

    def changed(self, task: ShardTask, before: State) -> None:
        """The state of a shard has changed; a new one is WAITING as before."""
        ...

    def call_failed(self, error: TunnelError) -> None:
        """A call failed; it is made again."""
        ...
