"""Until when every stream channel of a tunnel was read, from a description and from what readers know; pure."""

from __future__ import annotations

from collections.abc import Mapping

from ots_tunnel.model import ChannelInfo, ChannelStatus, ChannelType, Stage, TunnelDescription


def read_by_all(description: TunnelDescription, read: Mapping[str, float]) -> float | None:
    """The time at which every listed stream channel had been read to its end and confirmed.

    Unix seconds; None is unknown. It is at most the time of the description: a channel that began later is not listed,
    and has nothing older. One that has ended was read to its end.

    Args:
        description: taken before what is known of its channels.
        read: until when channels were read to their end and confirmed, by their ids.
    """
    if description.tunnel.stage == Stage.INIT or description.service_time is None:
        return None
    times = [read.get(channel.channel_id) for channel in unended(description)]
    known = [time for time in times if time is not None]
    return min(description.service_time, *known) if known and len(known) == len(times) else None


def unended(description: TunnelDescription) -> tuple[ChannelInfo, ...]:
    """The stream channels that have not ended."""
    return tuple(
        channel
        for channel in description.channels
        if channel.channel_type is ChannelType.STREAM and channel.status is not ChannelStatus.TERMINATED
    )
