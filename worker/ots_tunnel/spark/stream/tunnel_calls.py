"""What a query asks the service for before it follows a tunnel, and to read a logged batch again.

Spark's log tells where the query stands, and the tunnel's checkpoints follow it. A query that was killed may have left
them behind, and a client that it does not know may have moved them on. So they are set to Spark's positions before a
channel is opened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import (
    ConfigError,
    PossibleGap,
    QueryRefused,
    ReplayDiffers,
    ResourceGone,
    SequenceNumberMismatch,
    ServerUnavailable,
    TableNotFound,
    TransportError,
    TunnelExpired,
    TunnelNotFound,
)
from ots_tunnel.model import (
    FINISHED,
    ChannelId,
    ChannelInfo,
    ChannelStatus,
    ChannelType,
    Checkpoint,
    ClientId,
    SequenceInfo,
    Token,
    TunnelDescription,
    TunnelId,
)
from ots_tunnel.protocol.backoff import CALL_RETRY
from ots_tunnel.protocol.page import reached_log_end
from ots_tunnel.protocol.possible_gap import Gap, promised_since, read_until
from ots_tunnel.protocol.record import Record
from ots_tunnel.spark.stream.cut import Cut
from ots_tunnel.spark.stream.offsets import ChannelOffset, Offset, Position

#: Client of calls that need none: the service checks no owner there (docs/protocol.md 4.6).
NO_CLIENT: Final = ClientId("ots-tunnel-spark")
#: Seconds behind each try to store a checkpoint but the last: a late call of a former process may take its number, and
#: the service may be busy for a moment.
PAUSES: Final = (0.5, 1.0, 2.0, 4.0)


async def describe(client: TunnelClient, table: str, tunnel: str) -> TunnelDescription:
    """The tunnel with its channels.

    Raises:
        ConfigError: there is no such tunnel; names the option. TunnelExpired: its log is gone.
    """
    try:
        found = await client.describe_tunnel(table, tunnel)
    except TableNotFound as error:
        raise ConfigError(f"option 'table': found {table!r}, the instance has no such table") from error
    except TunnelNotFound as error:
        raise ConfigError(
            f"option 'tunnel': found {tunnel!r}, table {table!r} has no such tunnel; "
            f"create it with: ots-tunnel tunnel create {table} {tunnel} --type Stream"
        ) from error
    if found.tunnel.expired:
        raise TunnelExpired("OTSTunnelExpired", f"tunnel {tunnel!r} of table {table!r} has expired: create it again")
    return found


def check_tunnel(offset: Offset, tunnel_id: TunnelId, tunnel: str) -> None:
    """Refuse the checkpoint folder of another tunnel.

    Raises:
        QueryRefused: names both.
    """
    if offset.tunnel_id != tunnel_id:
        raise QueryRefused(
            f"checkpointLocation: found the offsets of tunnel {offset.tunnel_id}, option 'tunnel' names {tunnel!r}, "
            f"which is {tunnel_id}; allowed is a folder of its own for each tunnel, also for one that was created again"
        )


def check_clients(tunnel: TunnelDescription, own: str) -> None:
    """Refuse a tunnel that another client consumes.

    Args:
        own: what the ids of this query's clients contain, and no others.

    Raises:
        ConfigError: names the client.
    """
    others = sorted({found.client_id for found in tunnel.channels if found.client_id and not is_own(found, own)})
    if others:
        raise ConfigError(
            f"option 'tunnel': found {tunnel.tunnel.tunnel_name!r}, which client {others[0]} consumes; allowed is one "
            "query on a tunnel: end the other one, or create a tunnel for this query. The client of a process that was "
            "killed ends after its heartbeat timeout"
        )


def is_own(channel: ChannelInfo, own: str) -> bool:
    """Whether a channel belongs to a client of this query."""
    return own in channel.client_id


async def release(client: TunnelClient, tunnel: TunnelDescription, own: str) -> None:
    """End the clients of this query's former processes, whose channels are free then; arguments as in `check_clients`.

    A process that lives on loses nothing: Spark's log refuses the second of two.

    Raises:
        TransportError, ServiceError: the service does not answer, or refuses.
    """
    for client_id in sorted({found.client_id for found in tunnel.channels if is_own(found, own)}):
        # gone by itself, or by a try whose answer was lost: whether the service says so is not documented
        with suppress(ResourceGone):
            await client.shutdown(tunnel.tunnel.tunnel_id, client_id, retry=CALL_RETRY)


class Ended(NamedTuple):
    """Channels that never come again.

    Args:
        stored: those whose end the service has stored.
        gaps: what may be missing of those among them that the service has ended unread.
    """

    stored: frozenset[ChannelId]
    gaps: Mapping[ChannelId, Gap]


async def align(client: TunnelClient, tunnel: TunnelDescription, offset: Offset, *, goes_on: bool) -> Ended:
    """Set the tunnel's checkpoints to the positions of an offset; the channels that have ended.

    Args:
        goes_on: behind changes that may be missing.

    Raises:
        QueryRefused: a channel was ended by another client. PossibleGap: changes may be missing, and the query does not
            go on. TransportError, ServiceError: the calls fail.
    """
    listed = {found.channel_id: found for found in tunnel.channels}
    ended, gaps = set(), {}
    for channel_id, channel in offset.channels.items():
        found = listed.get(channel_id)
        if found is not None and found.status is not ChannelStatus.TERMINATED:
            await _move(client, tunnel.tunnel.tunnel_id, channel_id, channel.position.token)
        elif not channel.is_finished:
            gaps[channel_id] = gap = _unread(tunnel, channel_id, found, channel.position)
            if not goes_on:
                raise PossibleGap(channel_id, gap.start, gap.end)
        if channel.is_finished or channel_id in gaps:
            ended.add(channel_id)
    return Ended(frozenset(ended), gaps)


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
    return Gap(read or promised_since(tunnel.tunnel) or 0.0, tunnel.service_time or time.time())


async def read_again(
    client: TunnelClient, tunnel_id: TunnelId, channel_id: ChannelId, channel: ChannelOffset
) -> list[Record]:
    """The records of a logged span.

    Raises:
        ReplayDiffers: they are not there as they were. TransportError, ServiceError, CodecError: the reads fail.
    """
    assert channel.span is not None, "only channels with records are read again"
    cut, token = Cut(channel_id, channel), channel.span.token
    records: list[Record] = []
    while not cut.is_done:
        try:
            page = await client.read_records(tunnel_id, NO_CLIENT, channel_id, token)
        except TunnelExpired as error:
            raise ReplayDiffers(channel_id, f"the service does not keep its records any more: {error}") from error
        records += cut.take(page.records)
        if page.next_token == FINISHED or (_is_stream(channel) and reached_log_end(page.may_more, page.rows)):
            cut.ended()
        token = page.next_token
    return records


def _is_stream(channel: ChannelOffset) -> bool:
    return not isinstance(channel.position.last, bytes)


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
