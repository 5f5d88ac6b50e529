"""One shard whose lease this worker holds: carries out the decisions of the shard's machine.

Theory of operation. A `ShardTask` joins the machine (`decide.consumer`), the lease, and the work on the shard:

    OPEN       the work begins as a task, once the work for an earlier lease of the shard has ended
    END        nothing: the work that has reached the end goes on to store SHARD_END
    DRAIN      the work is asked to stop; what it returns is the next event
    ABANDON    the fence is closed and the work cancelled
    HAND_OVER  the keeper gives the lease away, in a task
    SYNC       the next sync comes at once

Events come from the keeper's rounds, from the work, and from the timer that ends the pause of a failure. Each is
handled at once, in one step of the event loop: no effect waits.

Example: PARENTS_DONE starts the work. The sink refuses to answer: FAILED, and a pause of a second. The lease has a
thief meanwhile: STOLEN cancels the timer, and the lease is given away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol

from ots_tunnel.errors import OwnershipLost, TunnelError
from ots_tunnel.fence import ChannelFence
from ots_tunnel.log_actions import LogAction
from ots_tunnel.stream.decide.consumer import Effect, Event, State, step
from ots_tunnel.stream.following.work import ShardWork
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.lease.lease import SHARD_END
from ots_tunnel.stream.shards import ShardId

logger = logging.getLogger(__name__)


class Host(Protocol):
    """The worker around the shards."""

    def start(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task; its error ends the worker."""
        ...

    def fence_of(self, held: HeldLease) -> ChannelFence:
        """A new fence of the lease's shard; it inherits the doubt of the shard's last one."""
        ...

    def work_on(self, held: HeldLease, fence: ChannelFence) -> ShardWork:
        """New work on a shard."""
        ...

    def pause(self, failures: int) -> float:
        """Seconds until the work begins again after so many failures in a row."""
        ...

    async def is_read(self, held: HeldLease) -> bool:
        """Whether the shard was read to its end, whatever its lease says.

        Raises:
            TunnelError: that cannot be told now.
        """
        ...

    def failed(self, error: TunnelError) -> None:
        """A call failed, and is made again."""
        ...

    async def give(self, held: HeldLease) -> None:
        """Hand a lease over; see `LeaseKeeper.give`."""
        ...

    def sync_soon(self) -> None:
        """Look for new shards now."""
        ...

    def changed(self, task: ShardTask, before: State) -> None:
        """The state of a shard has changed."""
        ...


class ShardTask:
    """The work for one held lease, until it is handed over or lost.

    Args:
        earlier: work for an earlier lease of the shard that may not have ended.
    """

    def __init__(self, held: HeldLease, host: Host, earlier: asyncio.Task[None] | None = None) -> None:
        self.held = held
        self.state = State.WAITING
        self._host = host
        self._earlier = earlier
        self._failures = 0
        self._fence: ChannelFence | None = None
        self._work: ShardWork | None = None
        self._working: asyncio.Task[None] | None = None
        self._giving: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"ShardTask({self.shard_id}, {self.state.value})"

    @property
    def shard_id(self) -> ShardId:
        """The shard."""
        return self.held.shard_id

    @property
    def unended(self) -> asyncio.Task[None] | None:
        """Work that has not ended: the present one, or that of an earlier lease."""
        return next((task for task in (self._working, self._earlier) if task is not None and not task.done()), None)

    def feed(self, event: Event) -> None:
        """Take an event.

        Raises:
            InvalidTransition: it cannot happen in this state.
        """
        before = self.state
        self.state, effect = step(before, event)
        if self._retry is not None and self.state is not State.FAILED:
            self._retry.cancel()
            self._retry = None
        if self.state is not before:
            self._host.changed(self, before)
        if self.state is State.FAILED and before is not State.FAILED:
            self._begin_pause()
        self._carry_out(effect)

    def _carry_out(self, effect: Effect | None) -> None:
        match effect:
            case Effect.OPEN:
                self._open()
            case Effect.DRAIN:
                assert self._work is not None, "it was opened"
                self._work.stop()
            case Effect.ABANDON:
                self._abandon()
            case Effect.HAND_OVER:
                if self._giving is None or self._giving.done():
                    self._giving = self._host.start(self._give(), f"give {self.shard_id}")
            case Effect.SYNC:
                self._host.sync_soon()

    def _open(self) -> None:
        earlier = self.unended
        self._fence = self._host.fence_of(self.held)
        self._work = self._host.work_on(self.held, self._fence)
        self._working = self._host.start(self._run(self._work, earlier), f"shard {self.shard_id}")

    def _abandon(self) -> None:
        if self._fence is not None:
            self._fence.revoke()
        if self._working is not None:
            self._working.cancel()

    async def _run(self, work: ShardWork, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait((earlier,))
        try:
            is_finished = self.held.lease.is_finished or await self._is_ended_again()
        except OwnershipLost:
            self.feed(Event.FAILED)  # no call has failed; that the lease is lost is the keeper's to tell
            return
        except TunnelError as error:
            self._host.failed(error)
            self.feed(Event.FAILED)
            return
        if is_finished:
            self.feed(Event.OPENED_AT_END)
            return
        event = await work.run(self.feed)
        if work.has_moved:
            self._failures = 0
        self.feed(event)

    async def _is_ended_again(self) -> bool:
        """Store SHARD_END in a lease that was written anew after it: reading once more would bring old values back."""
        if not await self._host.is_read(self.held):
            return False
        await self.held.store(SHARD_END)
        fields = {"action": LogAction.LEASE_WRITTEN_ANEW, "channel_id": self.shard_id}
        logger.warning("another worker has written the lease of a shard anew that was read to its end", extra=fields)
        return True

    async def _give(self) -> None:
        await self._host.give(self.held)
        self.feed(Event.GIVEN if self.held.is_over else Event.FAILED)

    def _begin_pause(self) -> None:
        seconds = self._host.pause(self._failures)
        self._failures += 1
        self._retry = asyncio.get_running_loop().call_later(seconds, self.feed, Event.RETRY)
