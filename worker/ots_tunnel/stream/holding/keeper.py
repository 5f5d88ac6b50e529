"""The rounds of a worker: it takes leases, renews them, and hands them over.

Theory of operation
-------------------
Three loops run beside each other, so that a slow call of one delays no other:

    taker    list; pass on what was asked for; take; ask for one lease more        `decide.taking`
    renewer  renew every held lease, at once and beside each other
    watcher  list; find out which held leases were asked for                       `decide.handing_over`

What reads the shards is called back: a lease is `gained`, is `asked` for, or is `lost`. The work answers `asked` by
stopping, and then calls `give`; until it does, the lease is renewed, and `asked` is called in every round.

A failed call is reported and made again in the next round, as long as a later one can succeed; any other error ends
`run`. A lease whose renewals fail is lost when its duration has passed.

`stop` ends the taker, whose last call may still gain a lease. The watcher then asks the work for every lease, and names
an heir for each; `run` returns when none is held any more. So a stop costs the other workers one round, where a killed
worker costs them a lease's duration.

Example. A worker holds s1 and s2, another one s3, when `stop` is called. `asked` is called for both. The work for s1
has no batch: `give` writes owner = stealer = the other worker, which takes s1 in its next round. The work for s2 needs
10 s to finish its batch; s2 is renewed meanwhile, and then given as well. `run` returns.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Protocol

from ots_tunnel.errors import TunnelError, first_error
from ots_tunnel.fence import boottime
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.decide.handing_over import give_away, is_asked_for, to_pass_on
from ots_tunnel.stream.decide.sightings import Sightings, observe
from ots_tunnel.stream.decide.taking import is_given, to_steal, to_take
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.holding.settings import LeaseSettings
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.change import Change
from ots_tunnel.stream.lease.lease import NO_WORKER, Lease, WorkerId
from ots_tunnel.stream.shards import ShardId


class Work(Protocol):
    """What reads the shards; the keeper calls it, and nothing here may block."""

    def gained(self, held: HeldLease) -> None:
        """A lease is held: its shard may be read."""
        ...

    def asked(self, held: HeldLease) -> None:
        """The lease is to be given away: stop, then call `LeaseKeeper.give`. Called in every round until then."""
        ...

    def lost(self, held: HeldLease) -> None:
        """Another worker owns the lease, or may own it: stop at once, write nothing."""
        ...

    def failed(self, error: TunnelError) -> None:
        """A call failed; it is made again in the next round."""
        ...


class LeaseKeeper:
    """Holds this worker's share of the leases of one stream.

    Args:
        me: id of this worker, unique over all workers of the table.
        clock: monotonic seconds that count suspended time, because other workers' clocks run on.
        shuffle: brings leases into a random order.
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
    ) -> None:
        self._table = table
        self._stream_id = stream_id
        self._me = me
        self._work = work
        self._settings = settings
        self._clock = clock
        self._shuffle = shuffle or (lambda leases: random.sample(leases, len(leases)))
        self._held: dict[ShardId, HeldLease] = {}
        self._sightings: Sightings = {}
        self._heirs: dict[ShardId, WorkerId] = {}
        self._renewing: set[ShardId] = set()
        self._stopping = asyncio.Event()
        #: Whether a take may still be under way.
        self._taking = True
        #: Set once the worker stops, takes nothing more and holds nothing.
        self._done = asyncio.Event()

    def __repr__(self) -> str:
        return f"LeaseKeeper({self._me}, {len(self._held)} of {len(self._sightings)} leases)"

    @property
    def held(self) -> Mapping[ShardId, HeldLease]:
        """The leases that this worker holds."""
        return self._held

    @property
    def leases(self) -> Mapping[ShardId, Lease]:
        """Every lease of the stream as last listed."""
        return {shard: sighting.lease for shard, sighting in self._sightings.items()}

    async def run(self) -> None:
        """Take and renew leases until `stop` was called and none is held. Cancelled, it loses them without an heir.

        Raises:
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
            for held in tuple(self._held.values()):
                self._lose(held)

    def stop(self) -> None:
        """Take nothing more, and give every lease away; `run` returns when the work has given the last one."""
        self._stopping.set()

    async def give(self, held: HeldLease) -> None:
        """Hand a lease over, when the work for it has stopped. A failure is reported; the next round asks again."""
        if await self._try(held.give(self._heirs.get(held.shard_id, NO_WORKER))):
            self._forget(held)

    async def _taker(self) -> None:
        while not self._stopping.is_set():
            await self._try(self._take_round())
            await _until_set(self._stopping, self._settings.take_interval)
        self._taking = False
        self._check_done()

    async def _renewer(self, tasks: asyncio.TaskGroup) -> None:
        while not self._done.is_set():
            self._drop_expired()
            for held in self._held.values():
                if held.shard_id not in self._renewing:
                    tasks.create_task(self._renew(held), name=f"renewal of {held.shard_id}")
            await _until_set(self._done, self._settings.renew_interval)

    async def _watcher(self) -> None:
        while not self._stopping.is_set():
            await self._try(self._look_round())
            await _until_set(self._stopping, self._settings.renew_interval)
        while not self._done.is_set():
            await self._try(self._look_round())
            self._check_done()
            await _until_set(self._done, self._settings.renew_interval)

    async def _take_round(self) -> bool:
        await self._list()
        self._drop_expired()
        me, duration, held = self._me, self._settings.duration, self._held.keys()
        for passed in to_pass_on(me, self.leases.values(), held):
            await self._try(self._pass_on(passed))
        leases = to_take(me, self._sightings, held, self._clock(), duration, self._shuffle)
        # each by itself: a lease whose writes fail must not keep this worker from the others
        taken = [await self._try(self._take(lease)) for lease in leases if not self._stopping.is_set()]
        # a take that failed may have been made; the next list tells
        if self._settings.steals and None not in taken and not self._stopping.is_set():
            stolen = to_steal(me, self._sightings, taken.count(True), self._clock(), duration, self._shuffle)
            if stolen is not None:
                await self._table.apply(change.steal(stolen, me))
        return True

    async def _pass_on(self, passed: Change) -> bool:
        return await self._table.apply(passed) is not None

    async def _take(self, lease: Lease) -> bool:
        sent_at = self._clock()
        taken = await self._table.apply(change.take(lease, self._me))
        if taken is None:
            return False
        held = self._held[lease.shard_id] = HeldLease(self._table, self._settings, taken, sent_at, self._clock)
        self._work.gained(held)
        return True

    async def _renew(self, held: HeldLease) -> None:
        self._renewing.add(held.shard_id)
        try:
            if await self._try(held.renew()) is False:
                self._lose(held)
        finally:
            self._renewing.discard(held.shard_id)

    async def _look_round(self) -> bool:
        await self._list()
        for held in self._held.values():
            listed = self._sightings.get(held.shard_id)
            if listed is not None and is_asked_for(held.taken, listed.lease):
                held.thief = listed.lease.stealer
        passed = self._plan_farewell() if self._stopping.is_set() else []
        for held in tuple(self._held.values()):
            if self._stopping.is_set() or held.thief != NO_WORKER:
                self._work.asked(held)
        for gift in passed:  # last: a call that fails ends the round
            await self._table.apply(gift)
        return True

    def _plan_farewell(self) -> list[Change]:
        """Name an heir for every held lease; returns the gifts of what was handed over and not taken."""
        given = [lease for lease in self.leases.values() if is_given(self._me, lease)]
        given = [lease for lease in given if lease.shard_id not in self._held]
        mine = [*(held.lease for held in self._held.values()), *given]
        now = self._clock()
        gifts = give_away(self._me, mine, self._sightings, now, self._settings.duration)
        self._heirs.update((gift.before.shard_id, gift.after.owner) for gift in gifts)
        return [gift for gift in gifts if gift.before in given]

    async def _list(self) -> None:
        listing = await self._table.list(self._stream_id)
        self._sightings = observe(self._sightings, listing.leases, self._clock())

    def _drop_expired(self) -> None:
        for held in tuple(self._held.values()):
            if held.has_expired:
                self._lose(held)

    def _lose(self, held: HeldLease) -> None:
        held.end()
        if self._held.get(held.shard_id) is held:
            self._forget(held)
            self._work.lost(held)

    def _forget(self, held: HeldLease) -> None:
        if self._held.get(held.shard_id) is held:
            del self._held[held.shard_id]
        self._check_done()

    def _check_done(self) -> None:
        if self._stopping.is_set() and not self._taking and not self._held:
            self._done.set()

    async def _try(self, call: Coroutine[None, None, bool]) -> bool | None:
        """Make a call; None if it failed and is worth another one in the next round."""
        try:
            return await call
        except TunnelError as error:
            if not error.retryable:
                raise
            self._work.failed(error)
            return None


async def _until_set(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but not longer than until the next round."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
