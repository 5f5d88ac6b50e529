"""Files of changes in a folder or a bucket, one folder per channel (design section 4).

A replay replaces files instead of adding to them: see `channel_files`. Files of one key are in one channel's folder,
or in that of the channels before it; their records' `sequence` says their order.
"""

from __future__ import annotations

from typing import Self

from ots_tunnel.config import FilesSinkConfig, WorkerConfig
from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, ChannelType, Token, TunnelId
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Confirmation
from ots_tunnel.sinks.files.channel_files import ChannelFiles, Files
from ots_tunnel.sinks.files.formats import format_of
from ots_tunnel.sinks.files.names import folder_of
from ots_tunnel.sinks.files.stores import open_store
from ots_tunnel.sinks.retries import write_backoff
from ots_tunnel.sinks.tally import Tally


class FilesSink:
    """Publishes files of changes.

    Args:
        tunnel_id: first part of every folder's name: channels of another tunnel are others.
    """

    def __init__(self, tunnel_id: TunnelId, files: Files[Record]) -> None:
        self._tunnel_id = tunnel_id
        self._files = files
        #: Of channels that were ended.
        self._retries = 0
        self._channels: dict[ChannelId, ChannelFiles[Record]] = {}

    @classmethod
    def from_config(cls, config: WorkerConfig, sink: FilesSinkConfig) -> Self:
        """The sink that a document names.

        Raises:
            ConfigError: files of credentials are missing.
        """
        store = open_store(
            sink, path="sink.files", deadline=config.client.write_deadline, spool_directory=sink.spool_directory
        )
        backoff = write_backoff(config.delivery.retry)
        files = Files(store, format_of(sink), sink.max_file_bytes, sink.max_file_seconds, backoff)
        return cls(TunnelId(config.source.tunnel_id), files)

    def __repr__(self) -> str:
        return f"FilesSink({self._files.store!r})"

    async def open(self) -> None:
        """See `Sink.open`."""
        await self._files.store.check()

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """See `Sink.begin`."""
        channel = ChannelFiles(folder_of(self._tunnel_id, channel_id), channel_type, self._files)
        await channel.open(start)
        self._channels[channel_id] = channel

    async def write(self, batch: Batch, guard: Guard) -> Confirmation:
        """See `Sink.write`."""
        head, channel = batch.head or batch.records[0], self._channels[batch.channel_id]
        # What comes again has to be in a file that a resume replaces.
        return await channel.write(batch.records, batch.channel_id, head, guard, alone=batch.comes_again)

    def checkpointed(self, channel_id: ChannelId, token: Token) -> None:
        """See `Sink.checkpointed`."""
        if channel_id in self._channels:
            self._channels[channel_id].checkpointed()

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """See `Sink.end`."""
        channel = self._channels.get(channel_id)
        if channel is not None:
            await channel.end(abandoned=abandoned)
            if self._channels.get(channel_id) is channel:  # it may have been begun again meanwhile
                del self._channels[channel_id]
            self._retries += channel.retries

    async def close(self) -> None:
        """Nothing stays open."""

    def tally(self) -> Tally:
        """See `Sink.tally`."""
        return Tally(write_retries=self._retries + sum(channel.retries for channel in self._channels.values()))
