"""Publishes a channel's files one after the other, and removes the files that they replace.

Theory of operation (docs/architecture.md rule 16). A file is published when it appears under its name, and durable when
a checkpoint behind its last record is stored. A restart between the two reads the file's records again. The publisher
therefore waits for the checkpoint of one file before the next one appears: at most one published file is ahead of the
checkpoint. Pages are numbered, and a checkpoint names the last page before it: an older checkpoint, acknowledged while
or after the file appears, is no checkpoint behind the file.

The replay finds that file by its position: a stream file's name starts with the sequence of its first record, so every
file at or after the first record of the replay is stale. Files of existing rows are numbered, and their first key tells
where they start; the token of the replay holds the key at which it resumes. A stale file is removed right before the
first file of the replay appears, so that the folder holds every record at any moment but that one. One of the same name
is replaced, not removed: a delete without an answer could be carried out when the new file is there. A replay that
begins with pages of which nothing is stored, since the filter was changed, removes the stale files before these pages:
a checkpoint behind them may lie in the middle of a stale file, and the replay from there would not find it.

The order for one file:

    complete        the format writes the rows that it holds
    wait            until the checkpoint behind the file before is stored, and the dead letters of its pages are: a page
                    is confirmed with both, and a checkpoint must not lie in the middle of the file
    remove stale    guard, delete; once for each file of another name
    publish         guard, then the file appears; tried again without a limit while the store fails
    confirm         the confirmation of its batches ends, and the pipeline writes a checkpoint

Example: file 1 holds pages A and B, file 2 page C. File 1 appears, A and B are confirmed, and file 2 waits. The
checkpoint behind B is stored, file 2 appears, and the worker is killed. The next worker resumes behind B. C is read
again, its first record has the position of file 2, and the new file replaces file 2 even where it holds more pages.

After a failure nothing is published any more: the confirmation of that file raises it, those of others are cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Generic

from ots_tunnel.errors import SinkError, SinkRejected
from ots_tunnel.fence import Guard
from ots_tunnel.log_actions import LogAction
from ots_tunnel.sinks.confirmation import until_stored
from ots_tunnel.sinks.files.names import base_name, stream_name
from ots_tunnel.sinks.files.pending_file import PendingFile
from ots_tunnel.sinks.files.settings import FileSettings, Item
from ots_tunnel.sinks.files.store import FileSpoiled

logger = logging.getLogger(__name__)


class Publisher(Generic[Item]):
    """Publishes files of one channel.

    Args:
        folder: of the channel, relative to the store's own.
        on_free: called when the next file may be published; not after a failure.
    """

    def __init__(self, folder: str, files: FileSettings[Item], on_free: Callable[[], None]) -> None:
        self._folder = folder
        self._files = files
        self._on_free = on_free
        self._task: asyncio.Task[None] | None = None
        #: The last page of the file that was published last, and the last page that a durable checkpoint is behind.
        self._published_page = 0
        self._durable_page = 0
        self._durable = asyncio.Event()
        self._durable.set()
        #: Published files that the next one replaces.
        self.stale: list[str] = []
        #: Number of the next file of a base channel.
        self.next_number = 0
        self.failure: Exception | None = None
        self.retries = 0

    @property
    def is_free(self) -> bool:
        """Whether no file is being published."""
        return self._task is None

    async def until_free(self) -> None:
        """Wait for the file that is being published."""
        if self._task is not None:
            await asyncio.shield(self._task)

    def publish(self, file: PendingFile[Item]) -> None:
        """Begin to publish a file; no other one may be under way. Its confirmations end when it has appeared."""
        self._task = asyncio.create_task(self._publish(file), name=f"publish {self._folder}")

    def checkpointed(self, page: int) -> None:
        """A checkpoint behind this page is stored."""
        self._durable_page = max(self._durable_page, page)
        if self._durable_page >= self._published_page:
            self._durable.set()

    async def abandon(self) -> None:
        """Abandon the file that is being published."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def remove_stale(self, guard: Guard) -> None:
        """Remove the stale files.

        Raises:
            OwnershipLost: the guard forbids it. SinkRejected, SinkError: the store does.
        """
        while self.stale:
            # The guard is asked for each: the channel's next owner may publish under the same name.
            await self._files.store.delete(self._folder, self.stale[-1:], guard.check)
            self.stale.pop()

    async def _publish(self, file: PendingFile[Item]) -> None:
        """Publish a file and end its confirmations; does not raise."""
        earlier = self.failure
        try:
            if earlier is None:
                await self._write_out_or_drop(file)
            else:
                await file.drop()
        except Exception as error:
            # a store raises what its library raises; the confirmations of the file carry it to the pipeline
            self.failure = error
        finally:
            self._task = None
        if self.failure is not None:
            # The pipeline awaits confirmations in their order and stops at the first failure: one file has it.
            if earlier is None and not file.confirmation.done():
                file.confirmation.set_exception(self.failure)
            file.confirmation.cancel()
            return
        self._published_page = file.last_page
        if self._durable_page < file.last_page:
            self._durable.clear()
        if not file.confirmation.done():
            file.confirmation.set_result(None)
        self._on_free()

    async def _write_out_or_drop(self, file: PendingFile[Item]) -> None:
        try:
            await self._write_out(file)
        except BaseException:
            await file.drop()
            raise

    async def _write_out(self, file: PendingFile[Item]) -> None:
        await file.complete()
        if self._files.is_in_step:
            await self._durable.wait()
        await until_stored(file.after, "the dead letters of a file's records are not stored")
        suffix = self._files.form.suffix
        if file.start is not None:
            name = stream_name(file.start, file.rows, suffix)
        else:
            name = base_name(self.next_number, file.rows, suffix)
        if name in self.stale:
            self.stale.remove(name)
        await self._publish_until_stored(file, name)
        self.next_number += 1
        logger.debug("file published", extra={"action": LogAction.FILE_PUBLISHED, "file": f"{self._folder}/{name}"})

    async def _publish_until_stored(self, file: PendingFile[Item], name: str) -> None:
        failures = 0
        with self._files.writes.tries() as tries:
            while True:
                try:
                    await self.remove_stale(file.guard)
                    await self._files.store.publish(file.path, self._folder, name, file.guard.check)
                    return self._files.writes.confirmed()
                except (SinkRejected, FileSpoiled):
                    raise
                except SinkError as error:
                    pause = self._files.backoff.delay(failures, self._files.entropy())
                    tries.failed("a file cannot be published and is tried again", str(error), folder=self._folder)
                failures += 1
                self.retries += 1
                await asyncio.sleep(pause)
