"""A file of changes until it is published."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic

from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, SequenceInfo
from ots_tunnel.protocol.page import total_size
from ots_tunnel.sinks import Confirmation
from ots_tunnel.sinks.files.format import FileWriter
from ots_tunnel.sinks.files.settings import Item
from ots_tunnel.sinks.files.store import disk_error
from ots_tunnel.threads import DaemonThreads


@dataclass(slots=True)
class PendingFile(Generic[Item]):
    """A file that is being filled or published.

    Args:
        path: where it is filled.
        start: position of the first record that was read for it; None for existing rows.
        guard: the guard of its last batch, asked right before the file appears.
        threads: where the file is written.
        last_page: number of the last page in it; a checkpoint of this page or of a later one is behind the file.
    """

    path: Path
    writer: FileWriter[Item]
    start: SequenceInfo | None
    guard: Guard
    threads: DaemonThreads
    last_page: int = 0
    rows: int = 0
    size: int = 0
    #: Publish it as soon as no write to it is under way and the file before it is published.
    due: bool = False
    #: A write to it is under way or did not end well: it must not be published.
    busy: bool = False
    #: Confirmations of its batches, in their order.
    confirmations: list[Confirmation] = field(default_factory=list)
    _writing: asyncio.Future[None] | None = None

    async def fill(self, items: Sequence[Item], channel_id: ChannelId) -> Confirmation:
        """Add records of one page.

        Returns:
            A confirmation that ends when the file has appeared.

        Raises:
            SinkError, CodecError: the file holds a part of the records and cannot be used any more.
        """
        self.busy = True
        # Kept for `drop`: the thread keeps running when this call is cancelled.
        self._writing = asyncio.ensure_future(self.threads.run(self.writer.write, items, channel_id))
        try:
            await asyncio.shield(self._writing)
        except OSError as error:
            raise disk_error(error) from error
        self.busy = False
        self.rows += len(items)
        self.size += total_size(items)
        confirmation: Confirmation = asyncio.get_running_loop().create_future()
        self.confirmations.append(confirmation)
        return confirmation

    async def complete(self) -> None:
        """Write the rows that are held; no records can be added afterwards.

        Raises:
            SinkError, CodecError: the file cannot be used any more.
        """
        try:
            await self.threads.run(self.writer.close)
        except OSError as error:
            raise disk_error(error) from error

    async def drop(self) -> None:
        """Remove the file once no thread writes to it."""
        try:
            if self._writing is not None:
                await asyncio.gather(self._writing, return_exceptions=True)
        finally:
            self.remove()

    def remove(self) -> None:
        """Remove the file; where that fails, the next `FileStore.tidy` removes it."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
