"""Lets a channel's files appear one after the other, and removes what they replace.

No file appears before the checkpoint behind the former one is durable, so at most one published file is ahead of the
checkpoint; on resume it is replaced (docs/architecture.md rule 16).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Generic

from ots_tunnel.errors import SinkError, SinkRejected
from ots_tunnel.fence import Guard
from ots_tunnel.log_actions import LogAction
from ots_tunnel.sinks.files.names import base_name, stream_name
from ots_tunnel.sinks.files.pending_file import PendingFile
from ots_tunnel.sinks.files.settings import FileSettings, Item
from ots_tunnel.sinks.files.store import FileSpoiled
from ots_tunnel.sinks.retries import log_retry

logger = logging.getLogger(__name__)


class Publisher(Generic[Item]):
    """Publishes files of one channel.

    Args:
        folder: of the channel, relative to the store's own.
        free: told when the next file may be published; not after a failure.
    """

    def __init__(self, folder: str, files: FileSettings[Item], free: Callable[[], None]) -> None:
        self._folder = folder
        self._files = files
        self._free = free
        self._task: asyncio.Task[None] | None = None
        #: The checkpoint behind the last published file is durable.
        self._durable = asyncio.Event()
        self._durable.set()
        #: Published files that the next one replaces.
        self.stale: list[str] = []
        #: Number of the next file of a base channel.
        self.ordinal = 0
        self.failure: Exception | None = None
        self.retries = 0

    @property
    def is_free(self) -> bool:
        """Whether no file is on its way."""
        return self._task is None

    async def until_free(self) -> None:
        """Wait for the file that is on its way."""
        if self._task is not None:
            await asyncio.shield(self._task)

    def publish(self, file: PendingFile[Item]) -> None:
        """Begin to publish a file; none may be on its way. Its confirmations end when it has appeared."""
        self._task = asyncio.create_task(self._carry_out(file), name=f"publish {self._folder}")

    def checkpointed(self) -> None:
        """Everything that was confirmed so far is durable."""
        self._durable.set()

    async def abandon(self) -> None:
        """Give up the file that is on its way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def remove_stale(self, guard: Guard) -> None:
        """Remove the files that are replaced.

        Raises:
            OwnershipLost: the guard forbids it. SinkRejected, SinkError: the store does.
        """
        while self.stale:
            # Asked for each: whoever owns the channel after us may publish under the same name.
            guard.check()
            await self._files.store.delete(self._folder, self.stale[-1:])
            self.stale.pop()

    async def _carry_out(self, file: PendingFile[Item]) -> None:
        """Publish a file and end its confirmations; does not raise."""
        told = self.failure
        try:
            if told is None:
                await self._store(file)
        except Exception as error:
            self.failure = error
        finally:
            self._task = None
            file.remove()
        if self.failure is not None:
            # Once, to the first who waits: nobody would ask the others, which are behind it.
            if told is None and not file.waiting[0].done():
                file.waiting[0].set_exception(self.failure)
            for confirmation in file.waiting:
                confirmation.cancel()
            return
        # Runs after whoever waits for the confirmations, so that an older checkpoint is not taken for theirs.
        file.waiting[-1].add_done_callback(lambda _: self._durable.clear())
        for confirmation in file.waiting:
            if not confirmation.done():
                confirmation.set_result(None)
        self._free()

    async def _store(self, file: PendingFile[Item]) -> None:
        await file.complete()
        await self._durable.wait()
        suffix = self._files.form.suffix
        if file.start is not None:
            name = stream_name(file.start, file.rows, suffix)
        else:
            name = base_name(self.ordinal, file.rows, suffix)
        await self._again_and_again(file, name)
        self.ordinal += 1
        logger.debug("file published", extra={"action": LogAction.FILE_PUBLISHED, "file": f"{self._folder}/{name}"})

    async def _again_and_again(self, file: PendingFile[Item], name: str) -> None:
        failures = 0
        while True:
            try:
                await self.remove_stale(file.guard)
                return await self._files.store.publish(file.path, self._folder, name, file.guard.check)
            except (SinkRejected, FileSpoiled):
                raise
            except SinkError as error:
                pause = self._files.backoff.delay(failures, self._files.entropy())
                log_retry("a file cannot be published and is tried again", str(error), folder=self._folder)
            failures += 1
            self.retries += 1
            await asyncio.sleep(pause)
