"""What the rounds of one worker share: the leases that it holds, and what it has seen of all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TypeVar

from ots_tunnel.errors import AuthFailed, TunnelError
from ots_tunnel.fence import write_deadline
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.passing import may_pass
from ots_tunnel.stream.holding.held_lease import CheckTable, HeldLease
from ots_tunnel.stream.holding.seen_leases import SeenLeases
from ots_tunnel.stream.holding.settings import LeaseSettings
from ots_tunnel.stream.holding.work import Work
from ots_tunnel.stream.lease.lease import Lease, WorkerId
from ots_tunnel.stream.shards import ShardId

_T = TypeVar("_T")


class Holding:
    """The leases of one worker.

    Args:
        clock: monotonic seconds that count suspended time.
        on_less: called when a lease is held no more.
        check_table: see `HeldLease`.
    """

    def __init__(
        self,
        table: LeaseTable,
        stream_id: str,
        me: WorkerId,
        work: Work,
        settings: LeaseSettings,
        clock: Callable[[], float],
        on_less: Callable[[], None],
        check_table: CheckTable | None = None,
    ) -> None:
        self.table = table
        self.me = me
        self.work = work
        self.settings = settings
        self.clock = clock
        self.held: dict[ShardId, HeldLease] = {}
        doubt = write_deadline(settings.duration, settings.renew_interval)
        self.seen = SeenLeases(table, stream_id, me, clock, doubt, work.failed)
        #: Set once the worker is to take nothing more, and to give every lease away.
        self.stopping = asyncio.Event()
        self._on_less = on_less
        self._check_table = check_table

    def __repr__(self) -> str:
        return f"Holding({self.me}, {len(self.held)} of {len(self.seen.sightings)} leases)"

    @property
    def leases(self) -> Mapping[ShardId, Lease]:
        """Every lease of the stream as last listed."""
        return self.seen.leases

    @property
    def answered(self) -> float:
        """When the last answered call about leases was sent, by the clock; -inf before the first."""
        return max((self.seen.answered, *(held.fence.answered for held in self.held.values())))

    def gain(self, taken: Lease, sent_at: float, *, is_inherited: bool) -> None:
        """Hold a lease that was taken; see `HeldLease`."""
        held = self.held[taken.shard_id] = HeldLease(
            self.table,
            self.settings,
            taken,
            sent_at,
            self.clock,
            is_inherited=is_inherited,
            check_table=self._check_table,
        )
        self.work.gained(held)

    def drop_expired(self) -> None:
        """Lose the leases whose duration has passed without a renewal."""
        for held in tuple(self.held.values()):
            if held.has_expired:
                self.lose(held)

    def lose(self, held: HeldLease) -> None:
        """Another worker owns a lease, or may own it."""
        held.end()
        if self.held.get(held.shard_id) is held:
            self.forget(held)
            self.work.lost(held)

    def forget(self, held: HeldLease) -> None:
        """A lease is held no more."""
        if self.held.get(held.shard_id) is held:
            self.seen.lost(held)
            del self.held[held.shard_id]
        self._on_less()

    async def attempt(self, call: Coroutine[None, None, _T]) -> _T | None:
        """Make a call; None if it failed and is worth another one in the next round.

        Raises:
            TunnelError: a later call cannot succeed either.
        """
        try:
            return await call
        except TunnelError as error:
            if not may_pass(error) or (isinstance(error, AuthFailed) and not self.held):
                raise
            self.work.failed(error)
            return None
