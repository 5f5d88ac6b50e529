"""The rounds in which a worker takes leases: list, pass on what was asked for, take, ask for one lease more."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from ots_tunnel.stream.decide.handing_over import to_pass_on
from ots_tunnel.stream.decide.taking import to_steal, to_take
from ots_tunnel.stream.holding.holding import Holding
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.change import Change
from ots_tunnel.stream.lease.lease import Lease
from ots_tunnel.stream.shards import ShardId


class TakeRounds:
    """Takes leases for a holding.

    Args:
        shuffle: brings leases into a random order.
    """

    def __init__(self, holding: Holding, shuffle: Callable[[Sequence[Lease]], Sequence[Lease]] | None = None) -> None:
        self._holding = holding
        self._shuffle = shuffle or (lambda leases: random.sample(leases, len(leases)))
        #: Takes without an answer: each may have been carried out, or may be so later.
        self._doubted: dict[ShardId, list[Change]] = {}

    def __repr__(self) -> str:
        return f"TakeRounds({self._holding})"

    async def take(self) -> None:
        """One round.

        Raises:
            ConfigError: another worker runs under this worker's id. TunnelError: a call failed.
        """
        holding, stopping = self._holding, self._holding.stopping
        seen, held, me, duration = holding.seen, holding.held.keys(), holding.me, holding.settings.duration
        await seen.list(holding.held)
        seen.check_twin(held)
        holding.drop_expired()
        for passed in to_pass_on(me, holding.leases.values(), held):
            if seen.is_inherited(passed.before):
                continue
            await holding.attempt(self._pass_on(passed))
        leases = to_take(me, seen.sightings, held, holding.clock(), duration, self._shuffle)
        # each by itself: a lease whose writes fail must not keep this worker from the others
        taken = [await holding.attempt(self._take(lease)) for lease in leases if not stopping.is_set()]
        # a take that failed may have been made; the next list tells
        if holding.settings.steals and None not in taken and not stopping.is_set():
            stolen = to_steal(me, seen.sightings, taken.count(True), holding.clock(), duration, self._shuffle)
            if stolen is not None:
                await holding.table.apply(change.steal(stolen, me))

    async def _pass_on(self, passed: Change) -> bool:
        return await self._holding.table.apply(passed) is not None

    async def _take(self, lease: Lease) -> bool:
        holding = self._holding
        sent_at, doubted = holding.clock(), self._doubted.setdefault(lease.shard_id, [])
        taken = await holding.table.apply(change.take(lease, holding.me), doubted=doubted)
        del self._doubted[lease.shard_id]  # there is an answer
        if taken is None:
            return False
        holding.gain(taken, sent_at, is_inherited=holding.seen.is_inherited(lease))
        return True
