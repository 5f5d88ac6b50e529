"""Sets the tunnel's checkpoints to where Spark's log says that a query stands, before a channel is opened.

The tunnel's checkpoints follow Spark's log. A query that was killed may have left them behind, and another client may
have moved them on, or have read channels that began meanwhile. A channel is found as

    in the offset, and not ended    its checkpoint is set to the position: whatever was read beside is read again
    in the offset, ended            the query has read its end; another client has, which is refused; or the service has
                                    ended it unread, which is a gap
    in no batch yet                 its checkpoint has to be that of a new channel, or the one that it had when the
                                    folder was made. Any other one is refused: another client has read records that are
                                    in no batch, and where the channel began is known no more. One that the service has
                                    ended unread is a gap
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import PossibleGap, QueryRefused, SequenceNumberMismatch, ServerUnavailable, TransportError
from ots_tunnel.model import (
    FINISHED,
    ChannelId,
    ChannelInfo,
    ChannelStatus,
    ChannelType,
    Checkpoint,
    SequenceInfo,
    Token,
    TunnelDescription,
    TunnelId,
)
from ots_tunnel.protocol.possible_gap import Gap, promised_since, read_until
from ots_tunnel.spark.stream.offsets import Offset, Position
from ots_tunnel.spark.stream.tunnel_calls import NO_CLIENT

#: Seconds behind each try to store a checkpoint but the last: a late call of a former process may take its number, and
#: the service may be busy for a moment.
PAUSES: Final = (0.5, 1.0, 2.0, 4.0)


class Ended(NamedTuple):
    """Channels that never come again.

    Args:
        over: all that the service lists and that are over for the query, see `Offset.carried`.
        gaps: what may be missing of those among them that the service has ended unread.
    """

    over: frozenset[ChannelId]
    gaps: Mapping[ChannelId, Gap]


def was_read(checkpoint: Checkpoint) -> bool:
    """Whether a client has stored a checkpoint of a channel.

    Consume point and rows of a channel do not count: when the service moves them, and what it gives the successors of a
    channel that was split, is not documented, and a restart would be refused for good.
    """
    return checkpoint.sequence_number > 0


async def first_offset(client: TunnelClient, tunnel: TunnelDescription, query_id: str) -> Offset:
    """The offset of a new checkpoint folder: it begins at the tunnel's checkpoints, and names what others have read.

    Raises:
        TransportError, ServiceError: the calls fail.
    """
    ended, read = set(), {}
    for channel in tunnel.channels:
        if channel.status is ChannelStatus.TERMINATED:
            ended.add(channel.channel_id)
            continue
        stored = await client.get_checkpoint(tunnel.tunnel.tunnel_id, NO_CLIENT, channel.channel_id)
        if stored.token == FINISHED:
            ended.add(channel.channel_id)  # its client was killed before it told that: no page of it ever comes
        elif was_read(stored):
            read[channel.channel_id] = stored.sequence_number
    return Offset(tunnel.tunnel.tunnel_id, query_id, ended=frozenset(ended), read_before=read)


async def align(
    client: TunnelClient, tunnel: TunnelDescription, offset: Offset, *, goes_on: bool, is_new: bool = False
) -> Ended:
    """Set the tunnel's checkpoints to the positions of an offset; the channels that have ended.

    Args:
        goes_on: behind changes that may be missing.
        is_new: whether the offset is that of a new checkpoint folder, which begins at the tunnel's checkpoints.

    Raises:
        QueryRefused: a channel was ended or read by another client. PossibleGap: changes may be missing, and the query
            does not go on. TransportError, ServiceError: the calls fail.
    """
    listed = {found.channel_id: found for found in tunnel.channels}
    ended, gaps = set((offset.ended or frozenset()) & listed.keys()), {}
    for channel_id, channel in offset.channels.items():
        found = listed.get(channel_id)
        if found is not None and found.status is not ChannelStatus.TERMINATED:
            await _move(client, tunnel.tunnel.tunnel_id, channel_id, channel.position.token)
        elif not channel.is_finished:
            gaps[channel_id] = _unread(tunnel, channel_id, found, channel.position)
        if channel.is_finished:
            ended.add(channel_id)
    for found in () if is_new else _unopened(tunnel, offset):
        await _check_unopened(client, tunnel, found, offset.read_before.get(found.channel_id))
        if found.status is ChannelStatus.TERMINATED:
            gaps[found.channel_id] = _gap(tunnel, None)
    for channel_id, gap in gaps.items():
        if not goes_on:
            raise PossibleGap(channel_id, gap.start, gap.end)
    return Ended(frozenset(ended | gaps.keys()), gaps)


def _unopened(tunnel: TunnelDescription, offset: Offset) -> list[ChannelInfo]:
    """The channels that are in no batch."""
    if offset.ended is None:
        return []
    known = offset.channels.keys() | offset.ended
    return [channel for channel in tunnel.channels if channel.channel_id not in known]


async def _check_unopened(
    client: TunnelClient, tunnel: TunnelDescription, channel: ChannelInfo, number: int | None
) -> None:
    """Refuse a channel that another client has read before this query has opened it.

    Args:
        number: its sequence number when the checkpoint folder was made, if others had read it by then.

    Raises:
        QueryRefused: names the channel. TransportError, ServiceError: the call fails.
    """
    stored = await client.get_checkpoint(tunnel.tunnel.tunnel_id, NO_CLIENT, channel.channel_id)
    is_as_before = not was_read(stored) if number is None else stored.sequence_number == number
    if not is_as_before:
        raise QueryRefused(
            f"checkpointLocation: channel {channel.channel_id} was read by another client before this query has opened "
            "it, so that records are missing between its beginning and this query; begin with a new folder, and copy "
            f"table {tunnel.tunnel.table_name!r} again"
        )


def _unread(tunnel: TunnelDescription, channel_id: ChannelId, found: ChannelInfo | None, position: Position) -> Gap:
    """What may be missing of a channel that has ended where nobody has read on: the service ends one whose log is gone.

    Only a checkpoint moves the consume point, so that of a channel that another client has read is behind the position.

    Raises:
        QueryRefused: another client has ended it.
    """
    last = position.last.timestamp_us / 1e6 if isinstance(position.last, SequenceInfo) else 0.0
    read = read_until(channel_id, position.token, None, mark=max(last, position.until or 0.0))
    if found is None or found.channel_type is not ChannelType.STREAM or found.consume_point_ns / 1e9 > (read or 0.0):
        raise QueryRefused(
            f"checkpointLocation: channel {channel_id} was ended by another client, so that records are missing "
            f"between its end and this query; begin with a new folder, and copy table "
            f"{tunnel.tunnel.table_name!r} again"
        )
    return _gap(tunnel, read)


def _gap(tunnel: TunnelDescription, read: float | None) -> Gap:
    """What may be missing of a channel that has ended unread.

    Args:
        read: Unix seconds until which it was read; None is not at all.
    """
    return Gap(read or promised_since(tunnel.tunnel) or 0.0, tunnel.service_time or time.time())


async def _move(client: TunnelClient, tunnel_id: TunnelId, channel_id: ChannelId, token: Token) -> None:
    for tried in range(len(PAUSES) + 1):
        stored = await client.get_checkpoint(tunnel_id, NO_CLIENT, channel_id)
        if stored.token == token:
            return
        try:
            checkpoint = Checkpoint(token, stored.sequence_number + 1)
            return await client.checkpoint(tunnel_id, NO_CLIENT, channel_id, checkpoint)
        except (SequenceNumberMismatch, ServerUnavailable, TransportError):
            # whether a call without an answer has stored it, the next look tells
            if tried == len(PAUSES):
                raise
            await asyncio.sleep(PAUSES[tried])
