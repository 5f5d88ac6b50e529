"""One shard of a worker of the library: one task at a time, each repeated while the service does not answer.

A consumer that waits for its parents leaves that state only when they are read, also where its lease was stolen.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable
from typing import Any

from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.lease.lease import SHARD_END, TRIM_HORIZON, Position
from ots_tunnel.stream.shards import ShardIterator, ShardPage
from tests.simulation.leases.library.coordinator import Held
from tests.simulation.leases.library.processing import Processor
from tests.simulation.leases.library.table import LibraryTable, retried


class State(enum.Enum):
    """State of a consumer."""

    WAITING = enum.auto()
    INITIALIZING = enum.auto()
    PROCESSING = enum.auto()
    SHUTTING_DOWN = enum.auto()
    COMPLETE = enum.auto()


class Consumer:
    """Reads the shard of one held lease.

    Args:
        sync: brings shards and leases together, at the end of the shard.
        parent_seconds: between two looks at the parents.
        start: starts a task.
    """

    def __init__(
        self,
        held: Held,
        table: LibraryTable,
        reads: StreamClient,
        processor: Processor,
        sync: Callable[[], Any],
        parent_seconds: float,
        start: Callable[[Any], asyncio.Task[Any]],
    ) -> None:
        self.held = held
        self.state = State.WAITING
        self._table = table
        self._reads = reads
        self._processor = processor
        self._sync = sync
        self._parent_seconds = parent_seconds
        self._start = start
        self._position = TRIM_HORIZON
        self._task: asyncio.Task[Any] | None = None
        self._reason: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether it does nothing more."""
        return self.state is State.COMPLETE

    @property
    def has_given_up(self) -> bool:
        """Whether it has ended because its lease was lost."""
        return self.is_complete and self._reason == "ZOMBIE"

    def begin_shutdown(self, reason: str) -> None:
        """The lease is lost (ZOMBIE), or asked for (STOLEN)."""
        self._reason = self._reason or reason

    def advance(self) -> None:
        """Submit the next task, unless one is under way; an error of the last one is raised."""
        if self._task is not None:
            if not self._task.done():
                return
            is_over = self._task.result()
            self._task = None
            if is_over:
                self._move()
        if self._reason is not None and self.state in (State.INITIALIZING, State.PROCESSING):
            self.state = State.SHUTTING_DOWN
        tasks = {
            State.WAITING: self._wait_for_parents,
            State.INITIALIZING: self._initialize,
            State.PROCESSING: self._process,
            State.SHUTTING_DOWN: self._shut_down,
        }
        if self.state in tasks:
            self._task = self._start(tasks[self.state]())

    def _move(self) -> None:
        self.state = State(self.state.value + 1)
        if self.state is State.SHUTTING_DOWN:
            self.begin_shutdown("TERMINATE")

    async def _wait_for_parents(self) -> bool:
        for parent in sorted(self.held.lease.parents):
            found = await self._table.get(parent)
            if found is not None and found.checkpoint != SHARD_END:
                await asyncio.sleep(self._parent_seconds)
                return False
        return True

    async def _initialize(self) -> bool:
        found = await self._table.get(self.held.lease.shard_id)
        self._position = TRIM_HORIZON if found is None or not found.checkpoint else found.checkpoint
        return True

    async def _process(self) -> bool:
        if self._position == SHARD_END:
            return True
        page: ShardPage = await retried(self._fetch)
        self._position = SHARD_END if page.next_iterator is None else Position(page.next_iterator)
        await self._processor.process(page.records, self._position)
        return self._position == SHARD_END

    async def _fetch(self) -> ShardPage:
        lease = self.held.lease
        iterator = ShardIterator(self._position)
        if self._position == TRIM_HORIZON:
            iterator = await self._reads.iterator(lease.stream_id, lease.shard_id)
        return await self._reads.read(iterator)

    async def _shut_down(self) -> bool:
        if self._reason == "TERMINATE":
            self._processor.permitted = SHARD_END
        if self._reason != "ZOMBIE":
            await self._processor.checkpoint()
        if self._reason == "TERMINATE":
            await self._sync()
        return True
