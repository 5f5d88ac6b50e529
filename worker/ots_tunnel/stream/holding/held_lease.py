"""One lease that this worker holds.

Theory of operation. Renewals and checkpoints move one counter, so they pass one lock and follow each other. Each knows
the changes before it whose calls have failed (`calls.lease_table`), so that a late write of ours does not pass for that
of another worker.

The fence is that of a tunnel's client, with the lease's duration as its timeout: an answered renewal or checkpoint
counts from before it was sent, and writes to the sink end D before the lease may get another owner
(`ots_tunnel.fence`).

A worker of the Java library may write the lease anew while it is held (`decide.sightings`). The next renewal or
checkpoint is refused then, the row is read, and what was lost is restored: no other worker of this package takes it
before the lease's duration is over. So the work goes on, and the checkpoint stays, also that of a finished shard. It is
not restored where another worker may have owned it before that write: once it has expired, or was given away by a call
without an answer. Nor is it restored in another table of leases, which was made to begin anew.

A lease that was lost is not held again: a worker that takes it anew has another `HeldLease`, so that work for the first
one cannot store a checkpoint in the second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from ots_tunnel.errors import CodecError, OwnershipLost, TunnelError
from ots_tunnel.fence import Fence
from ots_tunnel.log_actions import LogAction
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.passing import may_pass
from ots_tunnel.stream.holding.settings import LeaseSettings
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.change import Change
from ots_tunnel.stream.lease.lease import NO_WORKER, Lease, Position, WorkerId
from ots_tunnel.stream.shards import ShardId

logger = logging.getLogger(__name__)

#: Raises LeaseTableNotFound where the table of leases is another one than at the start.
CheckTable = Callable[[], Awaitable[None]]


class HeldLease:
    """A lease from its take on, until it is handed over or lost.

    Args:
        taken: as it was taken, or restored since.
        sent_at: time of `clock` before the take was sent.
        clock: monotonic seconds that count suspended time.
        check_table: called before the lease is restored; raises LeaseTableNotFound where the table is another one.
    """

    def __init__(
        self,
        table: LeaseTable,
        settings: LeaseSettings,
        taken: Lease,
        sent_at: float,
        clock: Callable[[], float],
        *,
        is_inherited: bool = False,
        check_table: CheckTable | None = None,
    ) -> None:
        self.taken = taken
        self.lease = taken
        #: Who has asked for the lease; NO_WORKER if no worker has.
        self.thief: WorkerId = NO_WORKER
        self.fence = Fence(settings.duration, settings.renew_interval, clock)
        self.fence.heartbeat_answered(sent_at)
        self._table = table
        self._duration = settings.duration
        self._clock = clock
        self._lock = asyncio.Lock()
        self._doubted: list[Change] = []
        #: Whether the lease was left by an earlier process of this id, whose last writes may still take effect.
        self.is_inherited = is_inherited
        self._over = False
        #: Whether a gift was sent, whose answer may have been lost; and a restore.
        self._may_be_given = False
        self._may_be_restored = False
        self._was_restored = False
        self._check_table = check_table
        #: Whether an answer has told that another worker has changed the lease.
        self.was_refused = False

    def __repr__(self) -> str:
        return f"HeldLease({self.shard_id}, {self.fence})"

    @property
    def shard_id(self) -> ShardId:
        """The shard."""
        return self.lease.shard_id

    @property
    def is_over(self) -> bool:
        """Whether the lease is no longer held, so that nothing may be written."""
        return self._over

    @property
    def has_expired(self) -> bool:
        """Whether the lease's duration has passed, so that another worker may have taken it."""
        return self._clock() - self.fence.answered > self._duration

    async def renew(self) -> bool:
        """Renew the lease; whether it is still held.

        Raises:
            TunnelError: that is not known; the lease is held until it expires.
        """
        return await self._apply(change.renew)

    async def settle(self) -> Position:
        """The checkpoint, once no earlier write of this worker to the lease can take effect any more.

        The lease is renewed: an answered renewal has moved the counter, which is the condition of every earlier write.

        Raises:
            OwnershipLost: the lease is not held any more. TunnelError: it is not known whether it is.
        """
        if not await self.renew():
            raise OwnershipLost(f"the lease of shard {self.shard_id} is not held: its checkpoint is another worker's")
        return self.lease.checkpoint

    async def store(self, position: Position) -> None:
        """Store a checkpoint, which renews the lease.

        Raises:
            OwnershipLost: another worker owns the lease, or may own it.
            TunnelError: it is not known whether the checkpoint is stored.
        """
        if self.has_expired or not await self._apply(lambda lease: change.store(lease, position)):
            raise OwnershipLost(f"the lease of shard {self.shard_id} is not held: no checkpoint may be stored")

    async def give(self, heir: WorkerId) -> bool:
        """Hand the lease over, when no write is in flight: to the heir, or, if that is NO_WORKER, to any worker.

        Returns True: the lease is not held any more, also where another worker was faster.

        Raises:
            TunnelError: it is not known whether it is handed over; writes are forbidden all the same.
        """
        self.fence.revoke()
        if await self.renew():  # what was written anew is restored, and then given
            self._may_be_given = True
            await self._apply(lambda lease: self._gift(lease, heir))
        self.end()
        return True

    def end(self) -> None:
        """The lease is lost: nothing may be written any more."""
        self._over = True
        self.fence.revoke()

    async def _apply(self, make: Callable[[Lease], Change]) -> bool:
        async with self._lock:
            if self._over:
                return False
            sent_at, is_doubted = self._clock(), bool(self._doubted)
            after = await self._send(make(self.lease))
            if after is None and await self._restore():
                after = await self._send(make(self.lease))
            self._doubted.clear()  # there is an answer; a call that fails or is cancelled leaves what it has sent
            if not self._is_held():
                return False  # lost meanwhile: the counter may be that of another `HeldLease`
            if after is None:
                self.was_refused = not (is_doubted or self._may_be_restored)
                self.end()
                return False
            self._may_be_restored = False
            if after.created_ms != self.taken.created_ms:
                self.taken = after  # restored by an earlier call without an answer
                self._was_restored = True
            self.lease = after
            self.fence.heartbeat_answered(sent_at)
            return True

    def _gift(self, lease: Lease, heir: WorkerId) -> Change:
        if heir == NO_WORKER:
            return change.release(lease)
        # of a lease that was restored the thief's mark is gone, and a transfer does not write it
        is_marked = heir == self.thief and not self._was_restored
        return change.transfer(replace(lease, stealer=heir)) if is_marked else change.hand_over(lease, heir)

    async def _send(self, made: Change) -> Lease | None:
        return await self._table.apply(made, doubted=self._doubted, wanted=self._is_held)

    async def _restore(self) -> bool:
        """Restore a lease that was written anew as a whole; whether it is this worker's again."""
        if not self._may_restore():
            return False
        row = await self._row_of_this_table()
        if row is None or not row.may_hide_another or row.created_ms == self.taken.created_ms:
            return False
        # a position was sent when everything before it was written
        sent = [each.position for each in self._doubted if each.position is not None]
        lost = replace(self.lease, checkpoint=sent[-1]) if sent else self.lease
        self._doubted.clear()  # the row is another one
        self._may_be_restored = True
        restored = await self._table.apply(change.restore(row, lost), doubted=self._doubted, wanted=self._may_restore)
        if restored is None or not self._may_restore():
            return False
        self._doubted.clear()
        self.taken = self.lease = restored
        self._was_restored = True
        fields = {"action": LogAction.LEASE_WRITTEN_ANEW, "channel_id": self.shard_id}
        logger.warning("another worker has written the lease of a shard anew, which is restored", extra=fields)
        return True

    async def _row_of_this_table(self) -> Lease | None:
        """The lease as it stands; None where it is none, or cannot be read now."""
        try:
            if self._check_table is not None:
                await self._check_table()
            row = await self._table.get(self.lease.stream_id, self.shard_id)
        except CodecError:
            return None  # the next list tells what is wrong with it
        except TunnelError as error:
            if not may_pass(error):
                raise
            return None
        return row if isinstance(row, Lease) else None

    def _may_restore(self) -> bool:
        return not (self._over or self._may_be_given or self.has_expired)

    def _is_held(self) -> bool:
        return not self._over
