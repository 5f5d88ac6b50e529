"""The files of one channel: one is filled while the one before is published.

Theory of operation. A page is written into the file that is being filled, and its confirmation ends when that file has
appeared. A file becomes due, in whichever order these happen, when

    it holds `max_bytes` of records        64 KiB to 5 GiB, 128 MiB by default
    it is `max_seconds` old                60 by default: the channel's checkpoint waits for it
    the next page has to begin a file      the page at the end time, which every resume reads again
    the channel ends

and is published when it is due, no write to it is under way, and the publisher is free. Until then pages are still
written into it, so a file may hold more than `max_bytes`.

A channel that is opened finds the files of earlier runs. For existing rows the token of the checkpoint tells which of
them the replay replaces, for a stream the first record does. See `publisher`.
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
from ots_tunnel.sinks.files.first_key import first_key
from ots_tunnel.sinks.files.names import base_names, position_text, stale_names, start_key
from ots_tunnel.sinks.files.pending_file import PendingFile
from ots_tunnel.sinks.files.publisher import Publisher
from ots_tunnel.sinks.files.settings import FileSettings, Item
from ots_tunnel.sinks.files.store import disk_error


class ChannelFiles(Generic[Item]):
    """Fills and publishes a channel's files; its calls do not overlap.

    Args:
        folder: of the channel, relative to the store's own.
    """

    def __init__(self, folder: str, channel_type: ChannelType, files: FileSettings[Item]) -> None:
        self._folder = folder
        self._is_stream = channel_type is ChannelType.STREAM
        self._files = files
        self._publisher = Publisher(folder, files, self._publish_if_due)
        self._filling: PendingFile[Item] | None = None
        self._timer: asyncio.TimerHandle | None = None
        #: Whether the first record has told which files of a stream a replay replaces.
        self._is_placed = False

    @property
    def retries(self) -> int:
        """Failed tries to publish."""
        return self._publisher.retries

    async def open(self, start: Token) -> None:
        """Find the files of earlier runs, those of a stream with its first record.

        Raises:
            SinkRejected: the store refuses, or a file is not what its name says. SinkError: the store does not answer.
            CodecError: the token is malformed.
        """
        store = self._files.store
        await store.tidy(self._folder)
        if self._is_stream:
            return
        kept, stale = base_names(await store.names(self._folder)), []
        key = start_key(start)
        if key is None and kept and start:
            folder = f"{store!r} {self._folder}"
            raise SinkRejected("UnknownPosition", f"{folder}: holds files, and the checkpoint {start} names no key")
        while kept and (key is None or await self._starts_at_or_after(kept[-1][1], key_order(key))):
            stale.append(kept.pop()[1])
        self._publisher.stale = stale
        self._publisher.next_number = kept[-1][0] + 1 if kept else 0

    async def resume(self, head: Record, guard: Guard) -> None:
        """Remove the files that a replay from this record replaces, before any is published.

        Raises:
            OwnershipLost: the guard forbids it. SinkRejected, SinkError: the store does.
        """
        await self._position_of(head)
        await self._publisher.remove_stale(guard)

    async def leave_out(self, head: Record, guard: Guard, *, after: Confirmation | None = None) -> None:
        """Nothing of the page that begins with this record is stored.

        A checkpoint behind it may be stored at once, unless a page before it is in a file that has not appeared. The
        stale files are removed first: one of them may hold what follows the checkpoint, and a replay from there would
        not find it by its position.

        Raises:
            OwnershipLost: the guard forbids it. SinkRejected, SinkError: the store does.
        """
        await self._position_of(head)
        if self._filling is not None and after is not None:
            self._filling.wait_for(after)  # pages before it are in this file, and so may be pages behind it
        if self._filling is None and self._publisher.is_free:
            await self._publisher.remove_stale(guard)

    async def write(
        self,
        items: Sequence[Item],
        channel_id: ChannelId,
        head: Record,
        guard: Guard,
        *,
        page: int,
        alone: bool = False,
        after: Confirmation | None = None,
    ) -> Confirmation:
        """Add records of one page to the file that is being filled; see `Deferred.take`.

        Args:
            head: the page's first record, also where `items` do not hold it.
            page, after: see `Batch`.
            alone: begin a file with this page.

        Raises:
            SinkRejected and others: why a file before could not be published. Its confirmation has the error as well,
                but nobody looks at it while a page before waits for its dead letters.
        """
        if self._publisher.failure is not None:
            raise self._publisher.failure
        if alone and self._filling is not None:
            await self._publish_when_free(self._filling)
        file = self._filling
        if file is None:
            file = self._filling = await self._begin(head, guard)
        file.guard = guard
        file.last_page = page
        if after is not None:
            file.wait_for(after)
        confirmation = await file.fill(items, channel_id)
        if file.due or file.size >= self._files.max_bytes:
            await self._publish_when_free(file)
        return confirmation

    def checkpointed(self, page: int) -> None:
        """A checkpoint behind this page is stored."""
        self._publisher.checkpointed(page)

    async def end(self, *, abandoned: bool) -> None:
        """Publish the last file, or drop it if `abandoned`.

        Raises:
            SinkRejected, OwnershipLost: a file could not be published.
        """
        if abandoned:
            await self._abandon()
            return
        if self._filling is not None:
            await self._publish_when_free(self._filling)
        await self._publisher.until_free()
        if self._publisher.failure is not None:
            raise self._publisher.failure

    async def _position_of(self, head: Record) -> SequenceInfo | None:
        """The position of a page; that of the first page tells which files are stale, and only these are listed."""
        if not self._is_stream:
            return None
        start = head.sequence
        if start is None:
            raise CodecError("a stream record without its position")
        if not self._is_placed:
            names = await self._files.store.names(self._folder, after=position_text(start))
            self._publisher.stale, self._is_placed = stale_names(names, start), True
        return start

    async def _begin(self, head: Record, guard: Guard) -> PendingFile[Item]:
        start = await self._position_of(head)
        path, threads = await self._files.store.spool(self._folder), self._files.threads
        try:
            writer = await threads.run(self._files.form.create, path)
        except OSError as error:
            raise disk_error(error) from error
        file = PendingFile(path, writer, start, guard, threads)
        self._timer = asyncio.get_running_loop().call_later(self._files.max_seconds, self._expire, file)
        return file

    def _expire(self, file: PendingFile[Item]) -> None:
        file.due = True
        self._publish_if_due()

    def _publish_if_due(self) -> None:
        file = self._filling
        if file is not None and file.due and not file.busy and self._publisher.is_free:
            self._publish(file)

    async def _publish_when_free(self, file: PendingFile[Item]) -> None:
        """Publish the file that is being filled once the one before it is published."""
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
                return key_order(first_key(name, file))

        try:
            return await self._files.threads.run(first_order) >= order
        except CodecError as error:
            # no repetition and no other worker can tell where the replay begins
            raise SinkRejected("UnreadableFile", f"{self._files.store!r} {self._folder}/{name}: {error}") from error
        except OSError as error:
            raise disk_error(error) from error
