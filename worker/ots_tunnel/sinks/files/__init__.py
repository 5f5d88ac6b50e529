"""Files of changes in a folder or a bucket, one folder per channel (docs/sinks.md).

A replay replaces files instead of adding to them: see `publisher`. The changes of one key are in the folder of one
channel, or of the channels that it was split from; the `sequence` of the records gives their order.
"""

from __future__ import annotations

from typing import Self

from ots_tunnel.config import FilesSinkConfig, WorkerConfig
from ots_tunnel.fence import Guard
from ots_tunnel.model import TunnelId
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Confirmation, Deferred, PageCost
from ots_tunnel.sinks.files.channel_folders import ChannelFolders
from ots_tunnel.sinks.files.places import format_of, open_store
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.retries import write_backoff
from ots_tunnel.sinks.tally import Tally

#: Arrays of a page stay until their row group is written, and encoding the group takes them several times.
PARQUET_COST = PageCost(16, 1200)


class FilesSink(ChannelFolders[Record], Deferred):
    """Publishes files of changes."""

    @classmethod
    def from_config(cls, config: WorkerConfig, section: FilesSinkConfig) -> Self:
        """The sink of a worker's document.

        Raises:
            ConfigError: files of credentials are missing.
        """
        store = open_store(
            section, path="sink.files", deadline=config.client.write_deadline, spool_directory=section.spool_directory
        )
        backoff = write_backoff(config.delivery.retry)
        files = FileSettings(store, format_of(section), section.max_file_bytes, section.max_file_seconds, backoff)
        sink = cls(TunnelId(config.source.tunnel_id), files)
        if section.format == "Parquet":
            sink.cost = PARQUET_COST
        return sink

    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        """See `Deferred.take`."""
        return await self.store(batch, batch.records, guard)

    async def pass_over(self, batch: Batch, guard: Guard) -> None:
        """See `Deferred.pass_over`."""
        await self.leave_out(batch, guard)

    async def close(self) -> None:
        """Nothing stays open."""

    def tally(self) -> Tally:
        """See `Channels.tally`."""
        return Tally(write_retries=self.retries)
