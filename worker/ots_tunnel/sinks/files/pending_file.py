"""A file of changes until it is published."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic

from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, SequenceInfo
from ots_tunnel.protocol.page import total_size
from ots_tunnel.sinks import Confirmation
from ots_tunnel.sinks.confirmation import is_stored
from ots_tunnel.sinks.files.format import FileWriter
from ots_tunnel.sinks.files.settings import Item
from ots_tunnel.sinks.files.store import disk_error
from ots_tunnel.threads import DaemonThreads

#: Seconds for which the end of a channel waits until a file is removed: a volume that hangs must not hold it up.
REMOVAL_SECONDS = 1.0


@dataclass(slots=True)
class PendingFile(Generic[Item]):
    """A file that is being filled or published.

    Args:
        path: where it is filled.
        start: position of the first record that was read for it; None for existing rows.
        guard: the guard of its last batch, asked right before the file appears.
        threads: where the file is written and removed; the event loop makes no call of the volume.
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
    #: What has to be stored before the file appears: refused records of its pages. See `wait_for`.
    after: list[Confirmation] = field(default_factory=list)
    #: Of all its batches: ends when it has appeared.
    confirmation: Confirmation = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    #: The last call of the writer.
    _writing: asyncio.Task[None] | None = None

    def wait_for(self, after: Confirmation) -> None:
        """Appear only once that is stored; what is stored already takes no memory, for each page of a file."""
        self.after = [*(each for each in self.after if not is_stored(each)), after]

    async def fill(self, items: Sequence[Item], channel_id: ChannelId) -> Confirmation:
        """Add records of one page.

        Returns:
            A confirmation that ends when the file has appeared.

        Raises:
            SinkError, CodecError: the file holds a part of the records and cannot be used any more.
        """
        self.busy = True
        await self._run(self.writer.write, items, channel_id)
        self.busy = False
        self.rows += len(items)
        self.size += total_size(items)
        return self.confirmation

    async def complete(self) -> None:
        """Write the rows that are held; no records can be added afterwards.

        Raises:
            SinkError, CodecError: the file cannot be used any more.
        """
        await self._run(self.writer.close)

    async def drop(self) -> None:
        """Remove the file once no thread writes to it, and wait for that, but not longer than REMOVAL_SECONDS.

        Where the removal fails, the next `FileStore.tidy` removes the file.
        """
        removing = asyncio.create_task(self._remove(), name=f"remove {self.path.name}")
        # Not cancelled: where the volume hangs, the file is removed when it answers again.
        await asyncio.wait((removing,), timeout=REMOVAL_SECONDS)

    async def _remove(self) -> None:
        if self._writing is not None:
            await asyncio.wait((self._writing,))
        with contextlib.suppress(OSError):
            await self.threads.run(self.path.unlink, True)

    async def _run(self, call: Callable[..., None], *arguments: object) -> None:
        # Kept for `drop`: the thread keeps running when the caller is cancelled.
        self._writing = asyncio.create_task(self.threads.run(call, *arguments))
        try:
            await asyncio.shield(self._writing)
        except OSError as error:
            raise disk_error(error) from error
