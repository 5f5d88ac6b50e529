"""Shards as the status of a worker shows them: as channels (`/channels`, `/metrics`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ots_tunnel.model import ChannelStatus
from ots_tunnel.stream.decide.consumer import State

#: What a shard's state is for a channel; a state that is over is not shown.
SHOWN: Final[Mapping[State, ChannelStatus]] = MappingProxyType(
    {
        State.WAITING: ChannelStatus.WAIT,
        State.OPENING: ChannelStatus.OPEN,
        State.READING: ChannelStatus.OPEN,
        State.ENDING: ChannelStatus.OPEN,
        State.FAILED: ChannelStatus.OPEN,
        State.DRAINING: ChannelStatus.CLOSING,
        State.HANDING_OVER: ChannelStatus.CLOSING,
        State.FINISHED: ChannelStatus.TERMINATED,
        State.RESTING: ChannelStatus.CLOSE,
    }
)
