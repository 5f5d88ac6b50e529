"""Whether anything was consumed from a tunnel, by its description and its checkpoints (docs/architecture.md 3.2)."""

from __future__ import annotations

from collections.abc import Mapping

from ots_tunnel.model import FINISHED, ChannelId, ChannelStatus, Checkpoint, TunnelDescription


def has_moved(tunnel: TunnelDescription, checkpoints: Mapping[ChannelId, Checkpoint] | None = None) -> bool | None:
    """Whether anything was consumed; None where only the checkpoints could tell and they were not read."""
    channels = tunnel.channels
    if any(c.consume_point_ns > 0 or c.rows > 0 or c.status is ChannelStatus.TERMINATED for c in channels):
        return True
    if checkpoints is None:
        return None if channels else False
    return any(checkpoint.sequence_number > 0 or checkpoint.token == FINISHED for checkpoint in checkpoints.values())
