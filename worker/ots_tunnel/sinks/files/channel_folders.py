"""The folders of a tunnel's open channels, one `ChannelFiles` each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, ChannelType, Token, TunnelId
from ots_tunnel.sinks import Batch, Confirmation, Contact
from ots_tunnel.sinks.files.channel_files import ChannelFiles
from ots_tunnel.sinks.files.names import folder_of
from ots_tunnel.sinks.files.settings import FileSettings, Item


class ChannelFolders(Generic[Item]):
    """The calls of `Deferred` that the files sink and the dead letters share: all but `take`.

    Args:
        tunnel_id: first part of every folder's name, since channel ids are unique only within a tunnel.
    """

    def __init__(self, tunnel_id: TunnelId, files: FileSettings[Item]) -> None:
        self._tunnel_id = tunnel_id
        self._files = files
        #: Failed tries to publish of channels that have ended.
        self._retries = 0
        self._channels: dict[ChannelId, ChannelFiles[Item]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._files.store!r})"

    @property
    def retries(self) -> int:
        """Failed tries to publish."""
        return self._retries + sum(channel.retries for channel in self._channels.values())

    async def open(self) -> None:
        """Check that files can be stored.

        Raises:
            SinkRejected, SinkError: they cannot.
        """
        await self._files.store.check()
        self._files.writes.looked()

    def contact(self) -> Contact:
        """See `Channels.contact`."""
        return self._files.writes.contact

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """See `Channels.begin`."""
        channel = ChannelFiles(folder_of(self._tunnel_id, channel_id), channel_type, self._files)
        await channel.open(start)
        self._channels[channel_id] = channel

    async def resume(self, batch: Batch, guard: Guard) -> None:
        """Remove what this replay replaces, before the first batch of a channel is written."""
        await self._channels[batch.channel_id].resume(batch.head or batch.records[0], guard)

    async def leave_out(self, batch: Batch, guard: Guard) -> None:
        """Take note of a batch of which nothing is stored; see `ChannelFiles.leave_out`."""
        await self._channels[batch.channel_id].leave_out(batch.head or batch.records[0], guard, after=batch.after)

    async def store(self, batch: Batch, items: Sequence[Item], guard: Guard) -> Confirmation:
        """Store the items of one batch; see `Deferred.take`."""
        head, channel = batch.head or batch.records[0], self._channels[batch.channel_id]
        # A page that every resume reads again has to begin a file, which the resume replaces.
        return await channel.write(
            items, batch.channel_id, head, guard, page=batch.page, alone=batch.is_read_again, after=batch.after
        )

    def checkpointed(self, channel_id: ChannelId, page: int) -> None:
        """See `Channels.checkpointed`."""
        if channel_id in self._channels:
            self._channels[channel_id].checkpointed(page)

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """See `Channels.end`."""
        channel = self._channels.get(channel_id)
        if channel is not None:
            await channel.end(abandoned=abandoned)
            if self._channels.get(channel_id) is channel:  # a new `begin` may have replaced it meanwhile
                del self._channels[channel_id]
            self._retries += channel.retries
