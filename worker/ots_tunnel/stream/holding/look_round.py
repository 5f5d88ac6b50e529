"""The rounds in which a worker looks which of its leases were asked for, and names an heir for each when it stops."""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel.stream.decide.handing_over import give_away, is_asked_for
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.holding.holding import Holding
from ots_tunnel.stream.lease.change import Change
from ots_tunnel.stream.lease.lease import NO_WORKER, WorkerId
from ots_tunnel.stream.shards import ShardId


class LookRounds:
    """Looks after the leases of a holding."""

    def __init__(self, holding: Holding) -> None:
        self._holding = holding
        self._heirs: dict[ShardId, WorkerId] = {}

    def __repr__(self) -> str:
        return f"LookRounds({self._holding})"

    def heir_of(self, held: HeldLease) -> WorkerId:
        """Who gets a lease: its thief, or, where this worker stops, whom it has named; NO_WORKER leaves it to any."""
        return self._heirs.get(held.shard_id, held.thief)

    async def look(self) -> None:
        """One round.

        Raises:
            TunnelError: a call failed.
        """
        holding, is_stopping = self._holding, self._holding.stopping.is_set
        await holding.seen.list(holding.held)
        for held in holding.held.values():
            listed = holding.seen.sightings.get(held.shard_id)
            if listed is not None and is_asked_for(held.taken, listed.lease):
                held.thief = listed.lease.stealer
        passed = self._plan_farewell() if is_stopping() else []
        for held in tuple(holding.held.values()):
            if is_stopping() or held.thief != NO_WORKER:
                holding.work.asked(held)
        for gift in passed:  # last: a call that fails ends the round
            await holding.table.apply(gift)

    def _plan_farewell(self) -> list[Change]:
        """Name an heir for every held lease; returns the gifts of what this worker owns without holding it."""
        holding = self._holding
        loose = [lease for lease in holding.leases.values() if lease.owner == holding.me]
        left = [lease for lease in loose if not holding.seen.is_inherited(lease)]
        given = [lease for lease in left if lease.shard_id not in holding.held]
        mine = [*(replace(held.lease, stealer=held.thief) for held in holding.held.values()), *given]
        gifts = give_away(holding.me, mine, holding.seen.sightings, holding.clock(), holding.settings.duration)
        self._heirs.update((gift.before.shard_id, gift.after.owner) for gift in gifts)
        return [gift for gift in gifts if gift.before in given]
