"""The rounds of a worker: it takes leases, renews them, and hands them over.

Theory of operation
-------------------
Three loops run beside each other, so that a slow call of one delays no other:

    taker    list; pass on what was asked for; take; ask for one lease more        `take_round`, `decide.taking`
    renewer  renew every held lease, at once and beside each other
    watcher  list; find out which held leases were asked for                       `look_round`, `decide.handing_over`

What reads the shards is called back: a lease is `gained`, is `asked` for, or is `lost`. The work answers `asked` by
stopping, and then calls `give`; until it does, the lease is renewed, and `asked` is called in every round.

A failed call is reported and made again in the next round, as long as a later one can succeed; any other error ends
`run`. A lease whose renewals fail is lost when its duration has passed. Keys that are refused end `run` once no lease
is held: until then they may be exchanged at this moment.

An earlier process of this id may have been killed in the middle of a write, which can take effect for D. A lease that
it has left is held at once, so that no other worker takes it; the work on it waits for D (`HeldLease.is_inherited`),
and it is given to no other worker before.

`stop` ends the taker, whose last call may still gain a lease. The watcher then asks the work for every lease, and names
an heir for each, also for leases that this worker owns without holding them, such as after a take without an answer. It
looks once more after the taker has ended; `run` returns when none is held any more. So a stop costs the other workers
one round, where a killed worker costs them a lease's duration.

Example. A worker holds s1 and s2, another one s3, when `stop` is called. `asked` is called for both. The work for s1
has no batch: `give` releases it, or writes owner = stealer = the other worker if that is one of the Java library; that
one takes s1 in its next round. The work for s2 needs 10 s to finish its batch; s2 is renewed meanwhile, and then given
as well. `run` returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from ots_tunnel.errors import first_error
from ots_tunnel.fence import boottime
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.holding.held_lease import CheckTable, HeldLease
from ots_tunnel.stream.holding.holding import Holding
from ots_tunnel.stream.holding.known_leases import KnownLeases
from ots_tunnel.stream.holding.look_round import LookRounds
from ots_tunnel.stream.holding.settings import LeaseSettings
from ots_tunnel.stream.holding.take_round import TakeRounds
from ots_tunnel.stream.holding.waiting import until_set
from ots_tunnel.stream.holding.work import Work
from ots_tunnel.stream.lease.lease import Lease, WorkerId
from ots_tunnel.stream.shards import ShardId


class LeaseKeeper:
    """Holds this worker's share of the leases of one stream.

    Args:
        me: id of this worker, unique over all workers of the table.
        clock: monotonic seconds that count suspended time, because other workers' clocks run on.
        shuffle: brings leases into a random order.
        check_table: see `HeldLease`.
    """

    def __init__(
        self,
        table: LeaseTable,
        stream_id: str,
        me: WorkerId,
        work: Work,
        settings: LeaseSettings,
        *,
        clock: Callable[[], float] = boottime,
        shuffle: Callable[[Sequence[Lease]], Sequence[Lease]] | None = None,
        check_table: CheckTable | None = None,
    ) -> None:
        self._settings = settings
        self._holding = Holding(table, stream_id, me, work, settings, clock, self._check_done, check_table)
        self._takes = TakeRounds(self._holding, shuffle)
        self._looks = LookRounds(self._holding)
        self._renewing: set[HeldLease] = set()
        self._stopping = self._holding.stopping
        #: Set once no take is under way any more, and none follows.
        self._took_last = asyncio.Event()
        #: Whether the table was looked at since, or could not be.
        self._left = False
        #: Set once the worker stops, takes nothing more and holds nothing.
        self._done = asyncio.Event()

    def __repr__(self) -> str:
        return f"LeaseKeeper({self._holding.me}, {len(self.held)} of {len(self.leases)} leases)"

    @property
    def held(self) -> Mapping[ShardId, HeldLease]:
        """The leases that this worker holds."""
        return self._holding.held

    @property
    def leases(self) -> Mapping[ShardId, Lease]:
        """Every lease of the stream as last listed."""
        return self._holding.leases

    @property
    def known(self) -> KnownLeases:
        """What is remembered of earlier lists."""
        return self._holding.seen.known

    @property
    def answered(self) -> float:
        """When the last answered call about leases was sent, by the clock; -inf before the first."""
        return self._holding.answered

    async def run(self) -> None:
        """Take and renew leases until `stop` was called and none is held. Cancelled, it loses them without an heir.

        Raises:
            ConfigError: another worker runs under this worker's id.
            TunnelError: a call failed and cannot succeed later.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._taker(), name="lease taker")
                tasks.create_task(self._renewer(tasks), name="lease renewer")
                tasks.create_task(self._watcher(), name="lease watcher")
        except BaseExceptionGroup as group:
            raise first_error(group) from group
        finally:
            for held in tuple(self.held.values()):
                self._holding.lose(held)

    def stop(self) -> None:
        """Take nothing more, and give every lease away; `run` returns when the work has given the last one."""
        self._stopping.set()

    async def give(self, held: HeldLease) -> None:
        """Hand a lease over, when the work for it has stopped. A failure is reported; the next round asks again."""
        if await self._holding.attempt(held.give(self._looks.heir_of(held))):
            self._holding.forget(held)

    async def _taker(self) -> None:
        while not self._stopping.is_set():
            await self._holding.attempt(self._takes.take())
            await until_set(self._stopping, self._settings.take_interval)
        self._took_last.set()

    async def _renewer(self, tasks: asyncio.TaskGroup) -> None:
        while not self._done.is_set():
            self._holding.drop_expired()
            for held in self.held.values():
                if held not in self._renewing:
                    tasks.create_task(self._renew(held), name=f"renewal of {held.shard_id}")
            await until_set(self._done, self._settings.renew_interval)

    async def _watcher(self) -> None:
        while not self._stopping.is_set():
            await self._holding.attempt(self._looks.look())
            await until_set(self._stopping, self._settings.renew_interval)
        while not self._done.is_set():
            is_last = self._took_last.is_set()
            await self._holding.attempt(self._looks.look())
            self._left = self._left or is_last
            self._check_done()
            await until_set(self._done if is_last else self._took_last, self._settings.renew_interval)

    async def _renew(self, held: HeldLease) -> None:
        self._renewing.add(held)
        try:
            if await self._holding.attempt(held.renew()) is False:
                self._holding.lose(held)
        finally:
            self._renewing.discard(held)

    def _check_done(self) -> None:
        if self._left and not self.held:
            self._done.set()
