"""Guards that sinks check before they send."""

from __future__ import annotations

import asyncio
import math

from ots_tunnel.errors import OwnershipLost
from ots_tunnel.fence import ChannelFence, Fence
from ots_tunnel.model import ChannelId


class OpenGuard:
    """The channel stays ours."""

    def check(self) -> None:
        return None


class ClosedGuard:
    """Another client owns the channel."""

    def check(self) -> None:
        raise OwnershipLost("late")


class LimitedGuard:
    """Passes a number of checks, then another client owns the channel; `passes` may be changed meanwhile."""

    def __init__(self, passes: float = math.inf) -> None:
        self.passes = passes
        self.checks = 0

    def check(self) -> None:
        self.checks += 1
        if self.checks > self.passes:
            raise OwnershipLost("late")


def open_fence(channel_id: ChannelId, deadline: float = 10) -> ChannelFence:
    """The fence of a channel that stays ours, on the loop's time; `deadline` is D of docs/architecture.md rule 4."""
    clock = asyncio.get_running_loop().time
    fence = Fence(4 * deadline, deadline, clock, clock)
    fence.heartbeat_answered(clock() + 1e6)
    return fence.channel(channel_id)
