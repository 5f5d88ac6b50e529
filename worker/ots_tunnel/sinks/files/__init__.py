"""Files of changes in a folder or a bucket, one folder per channel (docs/sinks.md).

A replay replaces files instead of adding to them: see `publisher`. The changes of one key are in the folder of one
channel, or of the channels that it was split from; the `sequence` of the records gives their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ots_tunnel.config import FilesSinkConfig, SinkDocument
from ots_tunnel.fence import Guard
from ots_tunnel.model import TunnelId
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Confirmation, Deferred, PageCost, confirmed
from ots_tunnel.sinks.files.channel_folders import ChannelFolders
from ots_tunnel.sinks.files.places import format_of, open_store
from ots_tunnel.sinks.files.rows.declared import Declared
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.retries import write_backoff
from ots_tunnel.sinks.tally import Tally

#: Arrays of a page stay until their row group is written, and encoding the group takes them several times.
PARQUET_COST = PageCost(16, 1200)


class FilesSink(ChannelFolders[Record], Deferred):
    """Publishes files of changes.

    Args:
        declared: the columns of typed files; None where all cells of a record are in one column.
    """

    def __init__(self, tunnel_id: TunnelId, files: FileSettings[Record], declared: Declared | None = None) -> None:
        super().__init__(tunnel_id, files)
        self._declared = declared

    @classmethod
    def from_config(cls, config: SinkDocument, section: FilesSinkConfig) -> Self:
        """The sink of a worker's document.

        Raises:
            ConfigError: files of credentials are missing.
        """
        store = open_store(
            section, path="sink.files", deadline=config.client.write_deadline, spool_directory=section.spool_directory
        )
        backoff = write_backoff(config.delivery.retry)
        files = FileSettings(store, format_of(section), section.max_file_bytes, section.max_file_seconds, backoff)
        sink = cls(TunnelId(config.source.tunnel_id), files, Declared.of(section))
        if section.format == "Parquet":
            sink.cost = PARQUET_COST
        return sink

    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        """See `Deferred.take`."""
        records = batch.records if self._declared is None else await self._fitting(batch, self._declared)
        if records:
            return await self.store(batch, records, guard)
        await self.leave_out(batch, guard)  # that file waits for the refused records, too
        return confirmed()

    async def pass_over(self, batch: Batch, guard: Guard) -> None:
        """See `Deferred.pass_over`."""
        await self.leave_out(batch, guard)

    async def _fitting(self, batch: Batch, declared: Declared) -> Sequence[Record]:
        """The records that typed files can take; the others go to the batch's callback.

        Raises:
            SinkRejected: the batch tolerates no refusal; nothing of it is in a file.
        """
        from ots_tunnel.sinks.files.rows.refusals import refusals, rejection  # takes time and memory

        refused = await self._files.threads.run(refusals, batch.records, declared)
        if not refused:
            return batch.records
        if batch.on_refused is None:
            raise rejection(refused)
        for refusal in refused:
            batch.on_refused(*refusal)
        unfit = {id(refusal.record) for refusal in refused}
        return [record for record in batch.records if id(record) not in unfit]

    async def close(self) -> None:
        """Nothing stays open."""

    def tally(self) -> Tally:
        """See `Channels.tally`."""
        return Tally(write_retries=self.retries)
