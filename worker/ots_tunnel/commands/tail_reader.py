"""Read a tunnel's records without consuming them.

No client connects and no checkpoint is written: the service does not check the owner of a channel that is read
(docs/protocol.md 4.6). Channels are read in parallel, each in its order. Channels that a split creates are found when
the tunnel is described again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ots_tunnel.client.page import Page
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.commands.preflight import find_tunnel
from ots_tunnel.errors import TunnelError, first_error
from ots_tunnel.model import FINISHED, ChannelId, ChannelStatus, ChannelType, ClientId, Stage, Token, TunnelId
from ots_tunnel.protocol.idle_read import IDLE_READ, IdleReads
from ots_tunnel.protocol.record import Record

#: Client id of the calls; no client of this name is connected.
CLIENT = ClientId("ots-tunnel-tail")

#: Seconds between two descriptions of the tunnel, which show new channels.
DESCRIBE_PAUSE = 5.0

#: Seconds a new tunnel may take until it has channels; the operator waits as long (docs/architecture.md 3.2).
READY_DEADLINE = 300.0

#: Receives the records of a page; returns False to end the reading.
Taker = Callable[[ChannelId, ChannelType, list[Record]], bool]


@dataclass(frozen=True, slots=True)
class TailedTunnel:
    """The tunnel that is read."""

    table: str
    tunnel_name: str
    tunnel_id: TunnelId = field(repr=False, default=TunnelId(""))


class TailReader:
    """Reads every channel of a tunnel from its checkpoint on.

    Args:
        follow: wait for records at the end of a channel, and for new channels; otherwise end there.
        take: called with the records of each page.
        sleep, entropy: replaced in tests.
    """

    def __init__(
        self,
        client: TunnelClient,
        tailed: TailedTunnel,
        *,
        follow: bool,
        take: Taker,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        entropy: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._tailed = tailed
        self._follow = follow
        self._take = take
        self._sleep = sleep
        self._entropy = entropy
        self._known: set[ChannelId] = set()
        self._enough = asyncio.Event()

    def __repr__(self) -> str:
        return f"TailReader({self._tailed.tunnel_name}, {len(self._known)} channels)"

    async def run(self) -> None:
        """Read until every channel has ended or `take` has returned False.

        Raises:
            ServiceError, TransportError: a call failed permanently.
            TunnelError: the tunnel has no channels after `READY_DEADLINE` seconds.
        """
        try:
            async with asyncio.timeout(READY_DEADLINE) as limit:
                await self._wait_for_channels()
        except TimeoutError as error:
            if not limit.expired():
                raise
            name = self._tailed.tunnel_name
            raise TunnelError(f"tunnel {name} has no channels after {READY_DEADLINE:.0f} s") from error
        try:
            async with asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(self._read_all(), name="tail")
                enough = tasks.create_task(self._enough.wait(), name="enough")
                await asyncio.wait((reading, enough), return_when=asyncio.FIRST_COMPLETED)
                reading.cancel()
                enough.cancel()
        except ExceptionGroup as group:
            raise first_error(group) from group

    async def _wait_for_channels(self) -> None:
        while True:
            found = await find_tunnel(self._client, self._tailed.table, self._tailed.tunnel_name)
            if found.tunnel.stage != Stage.INIT and found.channels:
                return
            await self._sleep(IDLE_READ.delay(2, self._entropy()))

    async def _read_all(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                found = await find_tunnel(self._client, self._tailed.table, self._tailed.tunnel_name)
                for channel in found.channels:
                    if channel.channel_id not in self._known and channel.status is not ChannelStatus.TERMINATED:
                        self._known.add(channel.channel_id)
                        work = self._read_channel(found.tunnel.tunnel_id, channel.channel_id, channel.channel_type)
                        tasks.create_task(work, name=f"tail {channel.channel_id}")
                if not self._follow:
                    return
                await self._sleep(DESCRIBE_PAUSE)

    async def _read_channel(self, tunnel_id: TunnelId, channel_id: ChannelId, kind: ChannelType) -> None:
        token: Token = (await self._client.get_checkpoint(tunnel_id, CLIENT, channel_id)).token
        idle = IdleReads()
        while token != FINISHED:
            page: Page = await self._client.read_records(tunnel_id, CLIENT, channel_id, token)
            if self._enough.is_set():  # another channel delivered the last wanted record
                return
            if page.records and not self._take(channel_id, kind, list(page.records)):
                self._enough.set()
                return
            token = page.next_token
            if kind is not ChannelType.STREAM:
                continue
            following = idle.after(rows=page.rows, size_bytes=page.size_bytes, may_more=page.may_more)
            idle = following or IdleReads()
            if following is None:
                continue
            if not self._follow and not page.records:
                return
            await self._sleep(following.pause(asyncio.get_running_loop().time(), self._entropy()))
