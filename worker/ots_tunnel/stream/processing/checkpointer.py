"""Stores the checkpoints of a user's processor into the lease of its shard.

Theory of operation. `checkpoint()` may be called from the processor's thread, where it returns when the checkpoint is
stored, and from the event loop, where what it returns is to be awaited. In both cases the write is one task of the
loop; the work on the shard waits for it before it goes on, also where a coroutine has not awaited it. Then the work has
its error, too: nobody else has.

The largest permitted checkpoint stands behind the records that the processor has been given. After `process_records`
has raised, it stands before them again: what they are about may not be done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any

from ots_tunnel.errors import OwnershipLost
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.lease.lease import Position


class RecordProcessorCheckpointer:
    """The checkpoints of one processor; made in the event loop."""

    def __init__(self, held: HeldLease, position: Position) -> None:
        self._held = held
        self._loop = asyncio.get_running_loop()
        self._permitted = position
        self._position = position
        #: Since the work has looked last.
        self._storing: list[_Storing] = []
        self._closed = False

    def __repr__(self) -> str:
        return f"RecordProcessorCheckpointer({self._held.shard_id})"

    @property
    def largest_permitted_checkpoint_value(self) -> str:
        """Behind the last record that the processor was given; SHARD_END behind the last one of a closed shard."""
        return self._permitted

    def checkpoint(self, value: str | None = None) -> Awaitable[None]:
        """Store a checkpoint: a worker that gets the shard later begins there.

        In the event loop, await the result; in a thread it is stored on return.

        Args:
            value: an iterator, TRIM_HORIZON or SHARD_END; None stores the largest permitted one. Reading goes on at the
                value, so an older one repeats records.

        Raises:
            TypeError: the value is no text: no worker could read the lease any more.
            OwnershipLost: the lease is not held any more: stop working on the shard.
            TunnelError: it is not known whether it is stored; store it again.
        """
        if value is not None and not isinstance(value, str):
            raise TypeError(f"checkpoint of shard {self._held.shard_id}: found {value!r}, allowed is a text")
        wanted = self._permitted if value is None else Position(value)
        if _runs_in(self._loop):
            return self._begin(wanted)
        asyncio.run_coroutine_threadsafe(self._await(wanted), self._loop).result()
        return _Done()

    # For the work on the shard

    @property
    def position(self) -> Position:
        """Where the next page begins."""
        return self._position

    def permit(self, position: Position) -> None:
        """The processor gets the records before a position; reading goes on there."""
        self._permitted = self._position = position

    async def settled(self) -> None:
        """Wait for the checkpoints that were begun.

        Raises:
            OwnershipLost, TunnelError: one of them could not be stored, and was not awaited.
        """
        storing, self._storing = self._storing, []
        for each in storing:
            await asyncio.wait((each.task,))
        for each in storing:
            if not each.is_awaited:
                each.task.result()

    def close(self) -> None:
        """Store nothing more: the processor is shut down, and another owner may read the shard."""
        self._closed = True

    async def _await(self, position: Position) -> None:
        await self._begin(position)

    def _begin(self, position: Position) -> _Storing:
        storing = _Storing(self._loop.create_task(self._store(position), name=f"checkpoint {self._held.shard_id}"))
        self._storing.append(storing)
        return storing

    async def _store(self, position: Position) -> None:
        if self._closed:
            raise OwnershipLost(
                f"the processor of shard {self._held.shard_id} is shut down: no checkpoint may be stored"
            )
        await self._held.store(position)
        self._position = position


class _Storing:
    """A checkpoint that is being stored."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self.task = task
        #: Whether the processor has the outcome.
        self.is_awaited = False
        task.add_done_callback(_seen)

    def __await__(self) -> Generator[Any, None, None]:
        self.is_awaited = True
        return self.task.__await__()


class _Done:
    """What was done before it is awaited."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


def _seen(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()  # who has not awaited it learns it from `settled`


def _runs_in(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
