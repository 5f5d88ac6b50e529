"""A worker of the library: its main loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.errors import TunnelError
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.lease.lease import Lease, WorkerId
from ots_tunnel.stream.shards import ShardId
from tests.simulation.leases.library.consumer import Consumer
from tests.simulation.leases.library.coordinator import Coordinator, Held, in_rounds
from tests.simulation.leases.library.processing import Processor
from tests.simulation.leases.library.table import DependencyFailed, LibraryTable
from tests.support.ledger import Entry

#: Pause of the main loop, seconds; the library's is 20 ms.
IDLE = 0.5
#: Seconds after the last round of a periodic thread when the worker ends.
STUCK = 60.0


class LibraryWorker:
    """Runs until it is stopped, or fails.

    Args:
        me: its id.
        duration, renew, take, sync, parents: times in seconds.
        witness: learns what its processors do.
    """

    def __init__(
        self,
        caller: ServiceCaller,
        reads: StreamClient,
        me: str,
        names: tuple[str, str],
        times: dict[str, float],
        clock: Callable[[], float],
        witness: Callable[[Entry], None],
    ) -> None:
        self._caller = caller
        self._reads = reads
        self._me = WorkerId(me)
        self._data_table, self._status_table = names
        self._times = times
        self._clock = clock
        self._witness = witness
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._consumers: dict[Held, Consumer] = {}
        self._coordinator: Coordinator | None = None
        self._syncing: asyncio.Task[None] | None = None
        self._synced_at = 0.0
        self._ran_at = [0.0, 0.0]

    def interrupt(self) -> None:
        """`shutdown()`: forget the leases; processors learn nothing, and nothing is given away."""
        self._stopping.set()

    def holds(self, shard: str) -> bool:
        """Whether it holds the lease of a shard, as it counts."""
        return self._coordinator is not None and ShardId(shard) in self._coordinator.live()

    def is_stuck(self) -> bool:
        """Whether it renews a lease whose consumer took it for lost, because a checkpoint was answered too late."""
        live = () if self._coordinator is None else self._coordinator.live().values()
        return any(held in self._consumers and self._consumers[held].has_given_up for held in live)

    async def run(self) -> str:
        """Run; returns why it has ended."""
        try:
            await self._run()
        except (DependencyFailed, TunnelError) as error:
            return f"ERROR: {error}"
        finally:
            await self._end_tasks()
        return "SHUTDOWN"

    async def _run(self) -> None:
        stream = await self._reads.stream_of(self._data_table)
        self._table = LibraryTable(self._caller, self._status_table, stream.stream_id)
        await self._find_table()
        await self._sync()
        coordinator = Coordinator(self._table, self._me, self._times["duration"], self._clock, self._start_lost)
        self._coordinator = coordinator
        await coordinator.take_back()
        self._ran_at = [self._clock()] * 2
        self._start(in_rounds(coordinator.take_round, self._times["take"], lambda: self._ran(0)))
        self._start(in_rounds(coordinator.renew_round, self._times["renew"], lambda: self._ran(1)))
        while not self._stopping.is_set():
            await self._step(coordinator)
            if self._clock() - min(self._ran_at) > STUCK:
                raise DependencyFailed("no round of a periodic thread has ended for a minute")
            try:
                async with asyncio.timeout(IDLE):
                    await self._stopping.wait()
            except TimeoutError:
                continue
        coordinator.forget_all()

    async def _step(self, coordinator: Coordinator) -> None:
        held = coordinator.live()
        normal = {shard: each for shard, each in held.items() if not each.lease.stealer}
        for each in normal.values():
            if each not in self._consumers:
                self._consumers[each] = self._consumer(each, coordinator)
        for each, consumer in list(self._consumers.items()):
            shard = each.lease.shard_id
            is_normal, is_stolen = normal.get(shard) is each, held.get(shard) is each
            if not is_normal:
                consumer.begin_shutdown("STOLEN" if is_stolen else "ZOMBIE")
            consumer.advance()
            if not is_normal and consumer.is_complete:
                if is_stolen:
                    await coordinator.transfer(each)
                del self._consumers[each]
        self._sync_sometimes()

    def _consumer(self, held: Held, coordinator: Coordinator) -> Consumer:
        processor = Processor(coordinator, held, self._witness)
        return Consumer(held, self._table, self._reads, processor, self._sync, self._times["parents"], self._start)

    def _sync_sometimes(self) -> None:
        if self._syncing is not None and self._syncing.done():
            self._syncing.result()
            self._syncing = None
        if self._syncing is None and self._clock() - self._synced_at >= self._times["sync"]:
            self._synced_at = self._clock()
            self._syncing = self._start(self._sync())

    async def _sync(self) -> None:
        leases = {lease.shard_id: lease for lease in await self._table.list()}
        shards = {shard.shard_id: shard for shard in await self._reads.shards(self._table.stream_id)}
        for shard_id, shard in shards.items():  # listed in the order of their creation: parents come first
            if shard_id not in leases:
                await self._table.create(Lease(self._table.stream_id, shard_id, parents=shard.parents))
        for shard_id, lease in leases.items():
            if shard_id not in shards:
                await self._table.delete(lease)

    async def _find_table(self) -> None:
        """The model makes no table: it fails, and is started again, until a worker of ours has made it."""
        await self._table.get(ShardId("NotExistLease"))

    def _ran(self, number: int) -> None:
        self._ran_at[number] = self._clock()

    def _start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the main loop raises it, or it is lost

    def _start_lost(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._start(coroutine)

    async def _end_tasks(self) -> None:
        """The process ends, and with it what still runs."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
