"""The shards whose leases a worker holds: a `ShardTask` for each, from its take until it is handed over or lost.

It takes the keeper's calls (`holding.work.Work`) and those of the tasks (`shard_task.Host`). In rounds it looks whether
the parents of the shards that wait are read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from ots_tunnel.errors import TunnelError
from ots_tunnel.fence import ChannelFence, InDoubt
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.decide.consumer import Event, State
from ots_tunnel.stream.following.owner import Owner
from ots_tunnel.stream.following.parents import parents_are_read
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.following.shard_task import ShardTask
from ots_tunnel.stream.following.work import ShardWork
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.holding.keeper import LeaseKeeper
from ots_tunnel.stream.holding.waiting import until_set
from ots_tunnel.stream.lease.lease import NO_WORKER, Lease
from ots_tunnel.stream.shards import ShardId, StreamInfo


class FollowedShards:
    """The work on the shards of one worker.

    Args:
        leases: every lease of the stream as this worker knows it.
        children_soon: called when a shard has ended, so that its children need leases.
        check_table: raises LeaseTableNotFound where the table of leases is another one than at the start.
    """

    def __init__(
        self,
        table: LeaseTable,
        stream: StreamInfo,
        owner: Owner,
        settings: FollowSettings,
        leases: Callable[[], Mapping[ShardId, Lease]],
        children_soon: Callable[[], None],
        check_table: Callable[[], Awaitable[None]],
    ) -> None:
        self._table = table
        self._stream = stream
        self._owner = owner
        self._settings = settings
        self._leases = leases
        self._children_soon = children_soon
        self._check_table = check_table
        self._look_soon = asyncio.Event()
        self._keeper: LeaseKeeper | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._shards: dict[ShardId, ShardTask] = {}
        self._fences: dict[ShardId, ChannelFence] = {}

    def __repr__(self) -> str:
        return f"FollowedShards({len(self.held)} held)"

    @property
    def held(self) -> Mapping[ShardId, ShardTask]:
        """The shards whose leases this worker holds."""
        tasks = tuple(self._shards.items())  # in one step: other threads ask as well
        return {shard: task for shard, task in tasks if not task.state.is_over}

    def begin(self, keeper: LeaseKeeper, tasks: asyncio.TaskGroup) -> None:
        """The keeper is about to run; the work on the shards runs in a group of tasks."""
        self._keeper, self._tasks = keeper, tasks

    async def look_at_parents(self) -> None:
        """Start shards whose parents are read, in rounds, without end."""
        while True:
            self._look_soon.clear()
            for task in [task for task in self._shards.values() if task.state is State.WAITING]:
                await self._look_at_parents(task)
            await until_set(self._look_soon, self._settings.parent_interval)

    # The leases' events

    def gained(self, held: HeldLease) -> None:
        """See `holding.work.Work`."""
        earlier = self._shards.get(held.shard_id)
        task = ShardTask(held, self, None if earlier is None else earlier.unended)
        self._shards[held.shard_id] = task
        self.changed(task, task.state)
        self._look_soon.set()

    def asked(self, held: HeldLease) -> None:
        """See `holding.work.Work`."""
        self._feed(held, Event.STOLEN if held.thief != NO_WORKER else Event.STOPPED)

    def lost(self, held: HeldLease) -> None:
        """See `holding.work.Work`."""
        self._feed(held, Event.LEASE_LOST)

    def failed(self, error: TunnelError) -> None:
        """See `holding.work.Work`."""
        self._owner.call_failed(error)

    # What the shards ask for

    def start(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """See `shard_task.Host`."""
        assert self._tasks is not None, "leases are held after `begin` alone"
        return self._tasks.create_task(coroutine, name=name)

    def fence_of(self, held: HeldLease) -> ChannelFence:
        """See `shard_task.Host`."""
        key = held.shard_id
        doubt = InDoubt(held.fence.deadline, asyncio.get_running_loop().time)
        if held.is_inherited and key not in self._fences:
            doubt.pass_on()  # what an earlier process of this id has sent
        made = self._fences[key] = ChannelFence(held.fence, doubt, self._fences.get(key))
        return made

    def work_on(self, held: HeldLease, fence: ChannelFence) -> ShardWork:
        """See `shard_task.Host`."""
        return self._owner.work_on(self._stream, held, fence)

    def pause(self, failures: int) -> float:
        """See `shard_task.Host`."""
        return self._settings.retry.delay(failures, random.random())

    async def is_read(self, held: HeldLease) -> bool:
        """See `shard_task.Host`; in another table of leases what was known of the former one tells nothing."""
        if self._keeper is None or not self._keeper.known.is_read(held.lease):
            return False
        await self._check_table()
        return True

    async def give(self, held: HeldLease) -> None:
        """See `shard_task.Host`."""
        assert self._keeper is not None, "it holds the lease"
        await self._keeper.give(held)

    def sync_soon(self) -> None:
        """See `shard_task.Host`; a shard that has ended may be the parent of one that waits."""
        self._children_soon()
        self._look_soon.set()

    def changed(self, task: ShardTask, before: State) -> None:
        """See `shard_task.Host`."""
        self._owner.changed(task, before)

    def _feed(self, held: HeldLease, event: Event) -> None:
        task = self._shards.get(held.shard_id)
        if task is not None and task.held is held:
            task.feed(event)

    async def _look_at_parents(self, task: ShardTask) -> None:
        try:
            may_start = await parents_are_read(self._table, task.held.lease, self._leases())
        except TunnelError as error:
            self._owner.call_failed(error)
            return
        if may_start and task.state is State.WAITING:  # it may have been handed over meanwhile
            task.feed(Event.PARENTS_DONE)
