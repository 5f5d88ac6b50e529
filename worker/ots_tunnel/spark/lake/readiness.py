"""Whether a tunnel is as a snapshot needs it: it keeps every change from now on, and has given none away yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from ots_tunnel.client.table_calls import TableDescription
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import QueryRefused, TunnelError
from ots_tunnel.model import ChannelStatus, Checkpoint, Stage, TunnelDescription, TunnelType
from ots_tunnel.spark.reader.logins import credentials_of
from ots_tunnel.spark.stream.options import StreamOptions
from ots_tunnel.spark.stream.tunnel_calls import NO_CLIENT, describe

R = TypeVar("R")

#: Seconds until a new tunnel has its channels, and between two looks at it.
PATIENCE_SECONDS: Final = 300.0
LOOK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Source:
    """A table and its tunnel."""

    table: TableDescription
    tunnel: TunnelDescription

    @property
    def tunnel_id(self) -> str:
        """Id of the tunnel."""
        return self.tunnel.tunnel.tunnel_id

    @property
    def needs_snapshot(self) -> bool:
        """Whether the tunnel has the changes alone."""
        return self.tunnel.tunnel.tunnel_type is TunnelType.Stream


def look_at(options: StreamOptions) -> Source:
    """The source.

    Raises:
        ConfigError: no connection, no such table or tunnel; names the option. TunnelError: the service fails.
    """
    with closing(options.place.reachable_client()) as client:
        table = client.describe_table(options.place.table)
    return Source(table, _run(options, _described))


def wait_until_unmoved(options: StreamOptions, path: str) -> None:
    """Wait until each channel of a tunnel of changes has a token: from here on none is lost.

    Raises:
        QueryRefused: something of the tunnel was consumed before the table had the existing rows, so that it is missing
            there; names the tunnel, the table, and the way out.
        TunnelError: the channels were not there in time; a second try may find them.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not _run(options, partial(_is_ready, path=path)):
        if time.monotonic() > deadline:
            raise TunnelError(f"tunnel {options.tunnel!r}: its channels were not there in {PATIENCE_SECONDS:.0f} s")
        time.sleep(LOOK_SECONDS)


def _run(options: StreamOptions, call: Callable[[TunnelClient, StreamOptions], Coroutine[Any, Any, R]]) -> R:
    async def run() -> R:
        place = options.place
        keys = credentials_of(place.credentials_directory, place.credentials_provider)
        client = TunnelClient(place.endpoint, place.instance, keys)
        try:
            return await call(client, options)
        finally:
            await client.close()

    # a notebook's thread has a loop that runs
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, run()).result()


async def _described(client: TunnelClient, options: StreamOptions) -> TunnelDescription:
    return await describe(client, options.place.table, options.tunnel)


async def _is_ready(client: TunnelClient, options: StreamOptions, path: str) -> bool:
    tunnel = await _described(client, options)
    tunnel_id = tunnel.tunnel.tunnel_id
    found = [await client.get_checkpoint(tunnel_id, NO_CLIENT, one.channel_id) for one in tunnel.channels]
    if _has_moved(tunnel, found):
        raise QueryRefused(
            f"option 'tunnel': found {options.tunnel!r}, of which changes were consumed before the existing rows were "
            f"in {path!r}; allowed is a new tunnel, with a new path and checkpoint folder"
        )
    if tunnel.tunnel.tunnel_type is not TunnelType.Stream:
        return True  # the service opens the channels of changes where those of existing rows began
    return bool(found) and tunnel.tunnel.stage != Stage.INIT and all(checkpoint.token for checkpoint in found)


def _has_moved(tunnel: TunnelDescription, checkpoints: list[Checkpoint]) -> bool:
    return any(checkpoint.sequence_number > 0 for checkpoint in checkpoints) or any(
        channel.consume_point_ns > 0 or channel.rows > 0 or channel.status is ChannelStatus.TERMINATED
        for channel in tunnel.channels
    )


def check_table(table: TableDescription, *, has_versions: bool, expires: bool) -> None:
    """Refuse a table that a mirror cannot equal.

    Raises:
        QueryRefused: it keeps several versions, or has a time to live; names the setting that goes on.
    """
    if table.max_versions > 1 and not has_versions:
        raise QueryRefused(
            f"option 'table': found {table.name!r}, which keeps {table.max_versions} versions; a mirror has the newest "
            "one, and not the older one that shows after the newest alone was deleted; allowed is a table that keeps "
            "one, or has_versions=True in a program of your own"
        )
    if table.time_to_live > 0 and not expires:
        raise QueryRefused(
            f"option 'table': found {table.name!r} with a time to live of {table.time_to_live} s; no change tells of "
            "an expired value, so that a mirror keeps it; allowed is a table without one, or expires=True in a program "
            "of your own"
        )
