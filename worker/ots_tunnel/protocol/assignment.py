"""The merge of a heartbeat answer into the channels that a client holds (docs/protocol.md 5.6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ots_tunnel.model import Channel, ChannelId, ChannelStatus

_ALIVE = (ChannelStatus.OPEN, ChannelStatus.CLOSING)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The channels after a merge.

    `channels` is what the next heartbeat carries, in the answer's order. `fresh` channels need a new connection, which
    replaces an old one of the same id. `vanished` channels were held and are no longer in the answer.
    """

    channels: Mapping[ChannelId, Channel]
    fresh: tuple[ChannelId, ...]
    vanished: tuple[ChannelId, ...]


def merge(local: Mapping[ChannelId, Channel], answer: Iterable[Channel]) -> Assignment:
    """Merge a heartbeat answer into the channels held now.

    Only ids of the answer remain. The service's copy replaces ours unless ours has a higher version: then ours was
    changed after the request left, and the next heartbeat carries it.
    A channel that we closed and that the service opened again with a higher version gets a fresh connection. With an
    equal version the two messages crossed, and the old connection reports once more.

    Args:
        local: channels as last seen or reported, including those closed since.
        answer: channels of the heartbeat response.
    """
    channels: dict[ChannelId, Channel] = {}
    for channel in answer:
        known = channels.get(channel.channel_id, local.get(channel.channel_id))
        newer = known is None or channel.version >= known.version
        channels[channel.channel_id] = channel if newer or known is None else known
    fresh = tuple(key for key, channel in channels.items() if _starts_afresh(local.get(key), channel))
    return Assignment(channels, fresh, tuple(key for key in local if key not in channels))


def _starts_afresh(known: Channel | None, channel: Channel) -> bool:
    if channel.status not in _ALIVE:
        return False
    return known is None or (known.status not in _ALIVE and channel.version > known.version)
