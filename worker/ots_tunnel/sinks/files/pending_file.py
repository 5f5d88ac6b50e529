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
from ots_tunnel.sinks import Confirmation
from ots_tunnel.sinks.files.format import FileWriter
from ots_tunnel.sinks.files.settings import Item
from ots_tunnel.sinks.files.store import disk_error


@dataclass(slots=True)
class PendingFile(Generic[Item]):
    """A file that is filled or published.

    Args:
        start: position of the first record read for it; None for existing rows.
        guard: asked right before it appears.
    """

    path: Path
    writer: FileWriter[Item]
    start: SequenceInfo | None
    guard: Guard
    rows: int = 0
    size: int = 0
    #: It is to be published as soon as nobody writes to it and the one before has appeared.
    due: bool = False
    #: Somebody writes to it, or a write was not done to its end: it must not be published.
    busy: bool = False
    waiting: list[Confirmation] = field(default_factory=list)
    _writing: asyncio.Future[None] | None = None

    async def fill(self, items: Sequence[Item], channel_id: ChannelId) -> Confirmation:
        """Add records of one page.

        Returns:
            What ends when the file has appeared.

        Raises:
            SinkError, CodecError: it holds a part of them and is of no use any more.
        """
        self.busy = True
        # Held, because a thread goes on when its waiter is cancelled.
        self._writing = asyncio.ensure_future(asyncio.to_thread(self.writer.write, items, channel_id))
        try:
            await asyncio.shield(self._writing)
        except OSError as error:
            raise disk_error(error) from error
        self.busy = False
        self.rows += len(items)
        self.size += sum(item.size for item in items)
        confirmation: Confirmation = asyncio.get_running_loop().create_future()
        self.waiting.append(confirmation)
        return confirmation

    async def complete(self) -> None:
        """Write what is held back; nothing can be added any more.

        Raises:
            SinkError, CodecError: it is of no use.
        """
        try:
            await asyncio.to_thread(self.writer.close)
        except OSError as error:
            raise disk_error(error) from error

    async def drop(self) -> None:
        """Remove it from where it was filled, once nobody writes to it."""
        try:
            if self._writing is not None:
                await asyncio.gather(self._writing, return_exceptions=True)
        finally:
            self.remove()

    def remove(self) -> None:
        """Remove it from where it was filled; where that fails, the next `FileStore.tidy` does."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
