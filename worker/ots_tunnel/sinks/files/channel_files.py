"""The files of one channel: fill one while the one before is published.

Confirmations end when their file has appeared. No file appears before the checkpoint behind the former one is
durable, so at most one published file is ahead of the checkpoint; on resume it is replaced (design rule 16).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from ots_tunnel.errors import CodecError, SinkError, SinkRejected
from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, ChannelType, SequenceInfo, Token
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.key_order import Order, key_order
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Confirmation
from ots_tunnel.sinks.files.folder_store import told_error
from ots_tunnel.sinks.files.formats import FileFormat, FileWriter, Sized
from ots_tunnel.sinks.files.names import base_name, base_names, stale_names, stream_name
from ots_tunnel.sinks.files.positions import start_key
from ots_tunnel.sinks.files.stores import FileStore

logger = logging.getLogger(__name__)

Item = TypeVar("Item", bound=Sized)


@dataclass(frozen=True, slots=True)
class Files(Generic[Item]):
    """What the channels of a sink share.

    Args:
        max_bytes: of records, as they came, after which a file is published.
        max_seconds: after which a file is published.
        backoff: between tries to publish.
        entropy: uniform in [0, 1).
    """

    store: FileStore
    form: FileFormat[Item]
    max_bytes: int
    max_seconds: float
    backoff: Backoff
    entropy: Callable[[], float] = random.random


@dataclass(slots=True)
class _File(Generic[Item]):
    """A file that is filled or published."""

    path: Path
    writer: FileWriter[Item]
    #: Position of the first record read for it; None for existing rows.
    start: SequenceInfo | None
    guard: Guard
    rows: int = 0
    size: int = 0
    #: It is to be published as soon as nobody writes to it and the one before has appeared.
    due: bool = False
    busy: bool = False
    waiting: list[Confirmation] = field(default_factory=list)


class ChannelFiles(Generic[Item]):
    """Fills and publishes a channel's files; its calls follow each other.

    Args:
        folder: of the channel, relative to the store's own.
    """

    def __init__(self, folder: str, channel_type: ChannelType, files: Files[Item]) -> None:
        self._folder = folder
        self._is_stream = channel_type is ChannelType.STREAM
        self._files = files
        self._filling: _File[Item] | None = None
        self._writing: asyncio.Future[None] | None = None
        self._publishing: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None
        #: Published files of a stream, until the first record says which of them a replay replaces.
        self._before: list[str] | None = None
        self._stale: list[str] = []
        self._ordinal = 0
        #: The checkpoint behind the last published file is durable.
        self._durable = asyncio.Event()
        self._durable.set()
        self.retries = 0

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
        kept = base_names(names)
        key = start_key(start)
        while key is not None and kept and await self._starts_at_or_after(kept[-1][1], key_order(key)):
            self._stale.append(kept.pop()[1])
        if key is None and kept and start:
            folder = f"{self._files.store!r} {self._folder}"
            raise SinkRejected("UnknownPosition", f"{folder}: holds files, and the checkpoint {start} names no key")
        if key is None:
            self._stale, kept = [name for _, name in kept], []
        self._ordinal = kept[-1][0] + 1 if kept else 0

    async def resume(self, head: Record, guard: Guard) -> None:
        """Remove at once what a replay from this record on replaces.

        Raises:
            OwnershipLost: the guard forbids it. SinkRejected, SinkError: the store does.
        """
        self._start_of(head)
        await self._remove_stale(guard)

    async def write(self, items: Sequence[Item], channel_id: ChannelId, head: Record, guard: Guard) -> Confirmation:
        """Add records of one page to the file that is filled; see `Sink.write`.

        Args:
            head: the page's first record, which may be none of `items`.
        """
        file = self._filling
        if file is None:
            file = self._filling = await self._begin(head, guard)
        file.guard = guard
        await self._fill(file, items, channel_id)
        confirmation: Confirmation = asyncio.get_running_loop().create_future()
        file.waiting.append(confirmation)
        if file.due or file.size >= self._files.max_bytes:
            await self._publish_when_free(file)
        return confirmation

    def checkpointed(self) -> None:
        """Everything that was confirmed so far is durable."""
        self._durable.set()

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
        if self._publishing is not None:
            await asyncio.shield(self._publishing)
        if self._failure is not None:
            raise self._failure

    def _start_of(self, head: Record) -> SequenceInfo | None:
        """Position of a page; the first one says which files are replaced."""
        if not self._is_stream:
            return None
        start = head.sequence
        if start is None:
            raise CodecError("a stream record without its position")
        if self._before is not None:
            self._stale, self._before = stale_names(self._before, start), None
        return start

    async def _begin(self, head: Record, guard: Guard) -> _File[Item]:
        start = self._start_of(head)
        path = await self._files.store.spool(self._folder)
        try:
            file = _File(path, self._files.form.create(path), start, guard)
        except OSError as error:
            raise told_error(error) from error
        self._timer = asyncio.get_running_loop().call_later(self._files.max_seconds, self._time_is_over, file)
        return file

    async def _fill(self, file: _File[Item], items: Sequence[Item], channel_id: ChannelId) -> None:
        file.busy = True
        # Held, because a thread goes on when its waiter is cancelled.
        self._writing = asyncio.ensure_future(asyncio.to_thread(file.writer.write, items, channel_id))
        try:
            await asyncio.shield(self._writing)
        except OSError as error:
            raise told_error(error) from error
        finally:
            file.busy = False
        file.rows += len(items)
        file.size += sum(item.size for item in items)

    def _time_is_over(self, file: _File[Item]) -> None:
        file.due = True
        if self._filling is file and not file.busy and self._publishing is None:
            self._publish(file)

    async def _publish_when_free(self, file: _File[Item]) -> None:
        """Have the file that is filled published once the one before is."""
        file.due = True
        while self._filling is file and self._publishing is not None:
            await asyncio.shield(self._publishing)
        if self._filling is file:
            self._publish(file)

    def _publish(self, file: _File[Item]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._filling = None
        self._publishing = asyncio.create_task(self._carry_out(file), name=f"publish {self._folder}")

    async def _carry_out(self, file: _File[Item]) -> None:
        """Publish a file and end its confirmations; does not raise."""
        try:
            if self._failure is None:
                await self._store(file)
        except Exception as error:
            self._failure = error
        finally:
            self._publishing = None
            file.path.unlink(missing_ok=True)
        first, *others = file.waiting
        if self._failure is not None:
            if not first.done():
                first.set_exception(self._failure)
            for confirmation in others:
                confirmation.cancel()
            return
        # Runs after whoever waits for the confirmations, so that an older checkpoint is not taken for theirs.
        file.waiting[-1].add_done_callback(lambda _: self._durable.clear())
        for confirmation in file.waiting:
            if not confirmation.done():
                confirmation.set_result(None)
        if self._filling is not None and self._filling.due and not self._filling.busy:
            self._publish(self._filling)

    async def _store(self, file: _File[Item]) -> None:
        try:
            await asyncio.to_thread(file.writer.close)
        except OSError as error:
            raise told_error(error) from error
        await self._durable.wait()
        if file.start is not None:
            name = stream_name(file.start, file.rows, self._files.form.suffix)
        else:
            name = base_name(self._ordinal, file.rows, self._files.form.suffix)
        await self._again_and_again(lambda: self._replace(file, name))
        self._ordinal += 1

    async def _replace(self, file: _File[Item], name: str) -> None:
        await self._remove_stale(file.guard)
        await self._files.store.publish(file.path, self._folder, name, file.guard.check)
        logger.debug("file published", extra={"action": "file_published", "file": f"{self._folder}/{name}"})

    async def _remove_stale(self, guard: Guard) -> None:
        if self._stale:
            guard.check()
            await self._files.store.delete(self._folder, self._stale)
            self._stale = []

    async def _again_and_again(self, attempt: Callable[[], Awaitable[None]]) -> None:
        failures = 0
        while True:
            try:
                return await attempt()
            except SinkRejected:
                raise
            except SinkError as error:
                pause = self._files.backoff.delay(failures, self._files.entropy())
                extra = {"action": "write_retried", "error": str(error), "pause": pause}
                logger.warning("a file cannot be published and is tried again", extra=extra)
            failures += 1
            self.retries += 1
            await asyncio.sleep(pause)

    async def _abandon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._publishing is not None:
            self._publishing.cancel()
        under_way = [task for task in (self._publishing, self._writing) if task is not None]
        await asyncio.gather(*under_way, return_exceptions=True)
        if self._filling is not None:
            self._filling.path.unlink(missing_ok=True)
            self._filling = None

    async def _starts_at_or_after(self, name: str, order: Order) -> bool:
        file = await self._files.store.read(self._folder, name)
        return await asyncio.to_thread(lambda: key_order(self._files.form.first_key(file))) >= order
