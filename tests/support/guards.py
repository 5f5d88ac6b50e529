"""Guards that sinks ask before they send: one that lets everything pass, and one that lets nothing pass."""

from __future__ import annotations

import asyncio

from ots_tunnel.errors import OwnershipLost
from ots_tunnel.fence import ChannelFence, Fence
from ots_tunnel.model import ChannelId


class Open:
    """The channel is ours."""

    def check(self) -> None:
        return None


class Closed:
    """The channel is somebody else's by now."""

    def check(self) -> None:
        raise OwnershipLost("late")


def open_fence(channel_id: ChannelId, deadline: float = 10) -> ChannelFence:
    """The fence of a channel that stays ours, on the loop's time; `deadline` is D."""
    clock = asyncio.get_running_loop().time
    fence = Fence(4 * deadline, deadline, clock, clock)
    fence.heartbeat_answered(clock() + 1e6)
    return fence.channel(channel_id)
