"""What a query asks the service for before it follows a tunnel, and to read a logged batch again."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import (
    ConfigError,
    QueryRefused,
    ReplayDiffers,
    ResourceGone,
    TableNotFound,
    TunnelExpired,
    TunnelNotFound,
)
from ots_tunnel.model import (
    FINISHED,
    ChannelId,
    ChannelInfo,
    ClientId,
    TunnelDescription,
    TunnelId,
)
from ots_tunnel.protocol.backoff import CALL_RETRY
from ots_tunnel.protocol.page import reached_log_end
from ots_tunnel.protocol.record import Record
from ots_tunnel.spark.stream.cut import Cut
from ots_tunnel.spark.stream.offsets import ChannelOffset, Offset

#: Client of calls that need none: the service checks no owner there (docs/protocol.md 4.6).
NO_CLIENT: Final = ClientId("ots-tunnel-spark")


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
