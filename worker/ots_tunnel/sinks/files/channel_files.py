"""The files of one channel: fill one while the one before is published.

Confirmations end when their file has appeared; see `publisher`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Generic

from ots_tunnel.errors import CodecError, SinkRejected
from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, ChannelType, SequenceInfo, Token
from ots_tunnel.protocol.key_order import Order, key_order
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Confirmation
from ots_tunnel.sinks.files.names import base_names, stale_names, start_key
from ots_tunnel.sinks.files.pending_file import PendingFile
from ots_tunnel.sinks.files.publisher import Publisher
from ots_tunnel.sinks.files.settings import FileSettings, Item
from ots_tunnel.sinks.files.store import disk_error


class ChannelFiles(Generic[Item]):
    """Fills and publishes a channel's files; its calls follow each other.

    Args:
        folder: of the channel, relative to the store's own.
    """

    def __init__(self, folder: str, channel_type: ChannelType, files: FileSettings[Item]) -> None:
        self._folder = folder
        self._is_stream = channel_type is ChannelType.STREAM
        self._files = files
        self._publisher = Publisher(folder, files, self._publish_what_is_due)
        self._filling: PendingFile[Item] | None = None
        self._timer: asyncio.TimerHandle | None = None
        #: Published files of a stream, until the first record says which of them a replay replaces.
        self._before: list[str] | None = None

    @property
    def retries(self) -> int:
        """Tries to publish that failed."""
        return self._publisher.retries

    async def open(self, start: Token) -> None:
        """Find out what is there.

        Raises:
            SinkRejected, SinkError: the store does not answer. CodecError: a file is none of ours.
        """
        store = self._files.store
        await store.tidy(self._folder)
        names = await store.names(self._folder)
        if self._is_stream:
            self._before = names
            return
        kept, stale = base_names(names), []
        key = start_key(start)
        if key is None and kept and start:
            folder = f"{store!r} {self._folder}"
            raise SinkRejected("UnknownPosition", f"{folder}: holds files, and the checkpoint {start} names no key")
        while kept and (key is None or await self._starts_at_or_after(kept[-1][1], key_order(key))):
            stale.append(kept.pop()[1])
        self._publisher.stale = stale
        self._publisher.ordinal = kept[-1][0] + 1 if kept else 0

    async def resume(self, head: Record, guard: Guard) -> None:
        """Remove at once what a replay from this record on replaces.

        Raises:
            OwnershipLost: the guard forbids it. SinkRejected, SinkError: the store does.
        """
        self._start_of(head)
        await self._publisher.remove_stale(guard)

    async def write(
        self, items: Sequence[Item], channel_id: ChannelId, head: Record, guard: Guard, *, alone: bool = False
    ) -> Confirmation:
        """Add records of one page to the file that is filled; see `Sink.write`.

        Args:
            head: the page's first record, which may be none of `items`.
            alone: begin a file with this page.
        """
        if alone and self._filling is not None:
            await self._publish_when_free(self._filling)
        file = self._filling
        if file is None:
            file = self._filling = await self._begin(head, guard)
        file.guard = guard
        confirmation = await file.fill(items, channel_id)
        if file.due or file.size >= self._files.max_bytes:
            await self._publish_when_free(file)
        return confirmation

    def checkpointed(self) -> None:
        """Everything that was confirmed so far is durable."""
        self._publisher.checkpointed()

    async def end(self, *, abandoned: bool) -> None:
        """Publish what is held back, or drop it if `abandoned`.

        Raises:
            SinkRejected, OwnershipLost: it could not be published.
        """
        if abandoned:
            await self._abandon()
            return
        if self._filling is not None:
            await self._publish_when_free(self._filling)
        await self._publisher.until_free()
        if self._publisher.failure is not None:
            raise self._publisher.failure

    def _start_of(self, head: Record) -> SequenceInfo | None:
        """Position of a page; the first one says which files are replaced."""
        if not self._is_stream:
            return None
        start = head.sequence
        if start is None:
            raise CodecError("a stream record without its position")
        if self._before is not None:
            self._publisher.stale, self._before = stale_names(self._before, start), None
        return start

    async def _begin(self, head: Record, guard: Guard) -> PendingFile[Item]:
        start = self._start_of(head)
        path = await self._files.store.spool(self._folder)
        try:
            file = PendingFile(path, self._files.form.create(path), start, guard)
        except OSError as error:
            raise disk_error(error) from error
        self._timer = asyncio.get_running_loop().call_later(self._files.max_seconds, self._time_is_over, file)
        return file

    def _time_is_over(self, file: PendingFile[Item]) -> None:
        file.due = True
        self._publish_what_is_due()

    def _publish_what_is_due(self) -> None:
        file = self._filling
        if file is not None and file.due and not file.busy and self._publisher.is_free:
            self._publish(file)

    async def _publish_when_free(self, file: PendingFile[Item]) -> None:
        """Have the file that is filled published once the one before is."""
        file.due = True
        while self._filling is file and not self._publisher.is_free:
            await self._publisher.until_free()
        if self._filling is file:
            self._publish(file)

    def _publish(self, file: PendingFile[Item]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._filling = None
        self._publisher.publish(file)

    async def _abandon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        file, self._filling = self._filling, None
        try:
            await self._publisher.abandon()
        finally:
            if file is not None:
                await file.drop()

    async def _starts_at_or_after(self, name: str, order: Order) -> bool:
        file = await self._files.store.read(self._folder, name)

        def first_order() -> Order:
            with file:
                return key_order(self._files.form.first_key(file))

        return await asyncio.to_thread(first_order) >= order
