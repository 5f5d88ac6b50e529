"""The library's rounds: takes, steals and renewals.

An owner counts from the *answer* of a renewal. It finds a thief only in a list whose counter is the one that it knows
at that moment. A lease that was asked for and has not come yet is forgotten, and asked for again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.change import Change
from ots_tunnel.stream.lease.lease import NO_WORKER, Lease, Position, WorkerId
from ots_tunnel.stream.shards import ShardId
from tests.simulation.leases.library.table import DependencyFailed, LibraryTable
from tests.simulation.machine.determinism import CURRENT


class Shutdown(Exception):
    """The library's ShutdownException: the lease is not held any more."""


@dataclass(eq=False)
class Held:
    """A lease that the worker holds; `since` is when its last renewal was answered."""

    lease: Lease
    since: float
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_renewing: bool = False


@dataclass
class _Seen:
    lease: Lease
    since: float


class Coordinator:
    """Takes and renews the leases of one worker.

    Args:
        clock: seconds.
        start: starts a task whose errors are lost.
    """

    def __init__(
        self,
        table: LibraryTable,
        me: WorkerId,
        duration: float,
        clock: Callable[[], float],
        start: Callable[..., object],
    ) -> None:
        self._table = table
        self._me = me
        self._duration = duration
        self._clock = clock
        self._start = start
        self._seen: dict[ShardId, _Seen] = {}
        self._held: dict[ShardId, Held] = {}

    def live(self) -> dict[ShardId, Held]:
        """The leases that are held, and have not expired as this worker counts."""
        now = self._clock()
        return {shard: held for shard, held in self._held.items() if now - held.since <= self._duration}

    def forget_all(self) -> None:
        """The worker stops: nothing is given away."""
        self._held.clear()

    async def take_back(self) -> None:
        """At the start: renew what this worker's id owns."""
        for lease in await self._table.list():
            if lease.owner == self._me and (after := await self._table.apply(change.renew(lease))) is not None:
                self._held[lease.shard_id] = Held(after, self._clock())

    async def take_round(self) -> None:
        """List, take, and ask for one lease more."""
        self._observe(await self._table.list())
        counts, target = self._shares()
        need = target - counts[self._me]
        taken = 0
        for lease in self._to_take(need):
            after = await self._table.apply(change.take(lease, self._me))
            if after is not None:
                taken += 1
                self._held[lease.shard_id] = Held(after, self._clock())
        if need > taken:
            await self._steal(counts, target, need)

    async def renew_round(self) -> None:
        """Find thieves, and renew every lease beside the others."""
        for lease in await self._table.list():
            held = self.live().get(lease.shard_id)
            if held is not None and lease.stealer and not held.lease.stealer and lease.counter == held.lease.counter:
                held.lease = replace(held.lease, stealer=lease.stealer)
        for shard, held in list(self._held.items()):
            if shard not in self.live():
                self._drop(held)
            elif not held.is_renewing:
                held.is_renewing = True
                self._start(self._renew(held))

    async def store(self, held: Held, position: Position) -> None:
        """Store a checkpoint.

        Raises:
            Shutdown: the lease is not held. DependencyFailed: the call failed.
        """
        if self.live().get(held.lease.shard_id) is not held or not await self._apply(
            held, lambda lease: change.store(lease, position)
        ):
            raise Shutdown(f"the lease of {held.lease.shard_id} is not held")

    async def transfer(self, held: Held) -> None:
        """Give a lease to its thief."""
        if held.lease.stealer != NO_WORKER and self._held.get(held.lease.shard_id) is held:
            await self._apply(held, change.transfer)
            self._drop(held)

    async def _renew(self, held: Held) -> None:
        try:
            await self._apply(held, change.renew)
        finally:
            held.is_renewing = False

    async def _apply(self, held: Held, make: Callable[[Lease], Change]) -> bool:
        async with held.lock:
            after = await self._table.apply(make(held.lease))
            if after is None:
                self._drop(held)
                return False
            held.lease, held.since = replace(after, stealer=held.lease.stealer), self._clock()
            return True

    def _drop(self, held: Held) -> None:
        if self._held.get(held.lease.shard_id) is held:
            del self._held[held.lease.shard_id]

    def _observe(self, listed: list[Lease]) -> None:
        now, known = self._clock(), self._seen
        self._seen = {}
        for lease in listed:
            before = known.get(lease.shard_id)
            if before is None:
                since = now if lease.owner else float("-inf")
            else:
                since = before.since if before.lease.counter == lease.counter else now
            self._seen[lease.shard_id] = _Seen(lease, since)

    def _is_expired(self, lease: Lease) -> bool:
        return self._clock() - self._seen[lease.shard_id].since > self._duration

    def _shares(self) -> tuple[Counter[WorkerId], int]:
        leases = [seen.lease for seen in self._seen.values()]
        counts = Counter({self._me: 0})
        counts.update(lease.owner for lease in leases if not lease.stealer and not self._is_expired(lease))
        return counts, -(-len(leases) // len(counts))

    def _to_take(self, need: int) -> list[Lease]:
        leases = [seen.lease for seen in self._seen.values()]
        given = [lease for lease in leases if lease.owner == lease.stealer == self._me][: max(need, 1)]
        expired = [lease for lease in leases if self._is_expired(lease) and lease not in given]
        chance = CURRENT.get().chance
        return [*given, *chance.sample(expired, len(expired))[: max(need - len(given), 0)]]

    async def _steal(self, counts: Counter[WorkerId], target: int, need: int) -> None:
        others = {owner: count for owner, count in counts.items() if owner != self._me}
        if not others:
            return
        busiest = max(sorted(others), key=lambda owner: others[owner])
        if others[busiest] < target or (others[busiest] == target and need <= 1):
            return
        leases = [seen.lease for seen in self._seen.values() if seen.lease.owner == busiest]
        stolen = CURRENT.get().chance.choice(leases)
        await self._table.apply(change.steal(stolen, self._me))


async def in_rounds(step: Callable[[], Awaitable[None]], seconds: float, ran: Callable[[], None]) -> None:
    """Make a step with a pause in between, as the library's periodic threads do; a failed one is forgotten."""
    while True:
        with suppress(DependencyFailed):  # the thread goes on
            await step()
        ran()
        await asyncio.sleep(seconds)
