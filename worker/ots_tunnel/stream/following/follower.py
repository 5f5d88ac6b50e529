"""Follows a stream beside other workers: brings shards and leases together, and works on the shards that it gets.

Theory of operation. `run` takes these steps:

1. Find the stream, create the table of leases if there is none, and give every shard a lease (`stream_sync`).
2. Run the keeper, which takes, renews and hands over leases. Each held lease has a `ShardTask` (`followed_shards`). Two
   loops run beside: one looks for new and dropped shards, the other one whether shards that wait may start.
3. After `stop` every shard finishes what it has begun, its lease goes to an heir, and `run` returns.

A call that fails is reported, and made again in its next round. What no later call repairs ends the worker, but in good
order: as by `stop`, and then the error is raised. These are a stream that was switched off, or switched off and on
again, since its shards are other ones; a gap, if gaps are errors; and what the work on a shard reports by `end`.

Example. A table has one shard, which is split while it is read. The sync gives both children a lease; this worker takes
them, and they wait. The parent is read to its end: SHARD_END is stored, and both children start at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from ots_tunnel.errors import ConfigError, TunnelError, first_error
from ots_tunnel.fence import boottime
from ots_tunnel.model import ChannelId
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.decide.sync import Listed
from ots_tunnel.stream.following.followed_shards import FollowedShards
from ots_tunnel.stream.following.owner import Owner
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.following.shard_task import ShardTask
from ots_tunnel.stream.following.stream_sync import StreamSync
from ots_tunnel.stream.holding.keeper import LeaseKeeper
from ots_tunnel.stream.lease.lease import NO_WORKER, Lease, WorkerId
from ots_tunnel.stream.shards import ShardId, StreamInfo


class StreamFollower:
    """Follows the stream of one table, together with all workers that use the same table of leases.

    Args:
        source: name of the table whose changes are read.
        me: id of this worker, unique over all workers of the leases.
        clock: monotonic seconds that count suspended time.
        wall: Unix seconds.
    """

    def __init__(
        self,
        client: StreamClient,
        table: LeaseTable,
        source: str,
        me: WorkerId,
        owner: Owner,
        settings: FollowSettings,
        *,
        clock: Callable[[], float] = boottime,
        wall: Callable[[], float] = time.time,
    ) -> None:
        if me == NO_WORKER:
            raise ConfigError("worker id: found an empty text, allowed is an id that no other worker of the leases has")
        self._table = table
        self._source = source
        self._me = me
        self._owner = owner
        self._settings = settings
        self._clock = clock
        self._sync = StreamSync(client, table, source, owner, settings, self.end, wall)
        self._stopping = asyncio.Event()
        self._fatal: TunnelError | None = None
        self._keeper: LeaseKeeper | None = None
        self._shards: FollowedShards | None = None

    def __repr__(self) -> str:
        return f"StreamFollower({self._me} on {self._source}, {self._keeper})"

    @property
    def leases(self) -> Mapping[ShardId, Lease]:
        """Every lease of the stream as this worker knows it."""
        if self._keeper is None:
            return {}
        held = tuple(self._keeper.held.items())  # in one step: other threads ask as well
        return {**self._keeper.leases, **{shard: each.lease for shard, each in held}}

    @property
    def shards(self) -> Mapping[ShardId, ShardTask]:
        """The shards whose leases this worker holds."""
        return {} if self._shards is None else self._shards.held

    @property
    def listed(self) -> Listed:
        """What the last sync of shards and leases has seen."""
        return self._sync.listed

    @property
    def answered(self) -> float:
        """When the last answered call about leases was sent, by the clock; -inf before the first."""
        return float("-inf") if self._keeper is None else self._keeper.answered

    async def run(self) -> None:
        """Follow until `stop`. Cancelled, it loses its leases without an heir: they expire.

        Raises:
            NoStream, StreamReplaced: the stream is switched off, or was switched on again.
            WrongLeaseTable: the table of leases is another kind of table, or one of its rows is no lease.
            PossibleGap: changes may be missing, and gaps are errors.
            TunnelError: a call cannot succeed later, or the work on a shard has ended the worker.
        """
        stream = await self._unless_stopped(self._sync.begin())
        if stream is not None:
            self._owner.started(stream)
            await self._follow(stream)
        if self._fatal is not None:
            raise self._fatal

    def stop(self) -> None:
        """Finish what was begun, hand every lease over, and let `run` return."""
        self._stopping.set()
        if self._keeper is not None:
            self._keeper.stop()

    def end(self, error: TunnelError) -> None:
        """Stop in good order, and let `run` raise the error; the first one counts."""
        if self._fatal is None:
            self._fatal = error
        self.stop()

    async def _follow(self, stream: StreamInfo) -> None:
        settings, sync = self._settings, self._sync
        check_table = partial(sync.check_table, stream)
        shards = FollowedShards(
            self._table,
            stream,
            self._owner,
            settings,
            lambda: self.leases,
            sync.soon.set,
            check_table,
        )
        keeper = LeaseKeeper(
            self._table,
            stream.stream_id,
            self._me,
            shards,
            settings.leases,
            clock=self._clock,
            check_table=check_table,
        )
        self._shards, self._keeper = shards, keeper
        if self._stopping.is_set():
            return  # a gap that the first sync has found
        try:
            async with asyncio.TaskGroup() as tasks:
                shards.begin(keeper, tasks)
                rounds = [
                    tasks.create_task(sync.run(stream, keeper.known), name="shard sync"),
                    tasks.create_task(shards.look_at_parents(), name="parents"),
                ]
                await keeper.run()
                for each in rounds:
                    each.cancel()
        except BaseExceptionGroup as group:
            raise first_error(group) from group

    async def _unless_stopped(self, step: Coroutine[Any, Any, StreamInfo]) -> StreamInfo | None:
        """The step's result; None where the order to stop comes first, which cancels it."""
        stepping = asyncio.ensure_future(step)
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((stepping, stopping), return_when=asyncio.FIRST_COMPLETED)
            return await stepping if stepping.done() else None
        finally:
            for task in (stepping, stopping):
                task.cancel()
            await asyncio.gather(stepping, stopping, return_exceptions=True)


def channel_of(shard_id: ShardId) -> ChannelId:
    """The shard as sinks, status and metrics name it."""
    return ChannelId(shard_id)
