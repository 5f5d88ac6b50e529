"""One client's life: heartbeats, and the channels that they bring and take away.

Theory of operation. A session runs beside each other:

    the beat             sends heartbeats (`Heartbeats`) and applies their answers (`HeldChannels`)
    ChannelTask.run      one task per channel that the client holds
    CompletionWatch.run  finds out whether the tunnel is complete

A heartbeat carries the status of every channel and the service answers with the channels that the client is to hold.
`protocol.assignment` merges the two: a channel that is new gets a task, a channel that vanished loses it, every other
is notified. The beat waits for nothing but its answer and its next turn: neither for a checkpoint, a sink nor a
callback (docs/architecture.md rule 6).

When the next heartbeat is sent:

    a channel has something to report   at once, but at least `early_spacing` (1 s) after the last answer or failure,
                                        so that reports of several channels go together
    the heartbeat failed                `early_spacing` after the failure: the timeout runs, so it is repeated soon
    otherwise                           the interval I after the last one was sent

A request may take I, so that one hanging answer costs no more than one beat.

A session ends in one of these ways, checked in this order after each heartbeat, answered or not:

1. GONE: the service does not know the client any more. The worker connects again.
2. An error that a new client cannot fix (`TERMINAL`): it is raised.
3. DRAINED: a drain was ordered and an answer confirmed that every channel was reported as closed.
4. TIMED_OUT: no heartbeat was answered for the timeout T; the channels belong to other clients. The worker connects
   again. The fence has closed D before (see `fence`), so nothing was written meanwhile.
5. OVERDUE: the drain took longer than its limit.

Afterwards the fence is revoked and every channel vanishes, so that no write leaves any more.

Example: I = 10 s, T = 60 s. The heartbeat sent at 100 s brings channel c; its task starts. At 103 s c has read its
checkpoint. At 107 s c is at its end and wants to report TERMINATED, so a heartbeat is sent at once. The next one is
due at 117 s. It fails at once, and is repeated at 118 s, 119 s and so on; without any answer the session ends after
167 s.

Source: docs/protocol.md 5.2, 5.3, 5.6, 5.10; docs/architecture.md rules 3 to 6.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import ResourceGone, TunnelError, first_error
from ots_tunnel.fence import Fence, boottime
from ots_tunnel.model import ClientId
from ots_tunnel.worker.context import ClientContext, WorkerContext
from ots_tunnel.worker.session.completion import CompletionWatch
from ots_tunnel.worker.session.heartbeats import Heartbeats
from ots_tunnel.worker.session.held_channels import HeldChannels
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status.worker_status import WorkerStatus


class SessionEnd(enum.Enum):
    """Why a session ended without an error."""

    GONE = "the service does not know the client any more"
    TIMED_OUT = "no heartbeat was answered within the timeout"
    DRAINED = "every channel was handed back"
    OVERDUE = "the drain took too long"


class Session:
    """Runs one connected client.

    Args:
        clock: seconds that count suspended time, see `fence`.
    """

    def __init__(
        self,
        client: TunnelClient,
        client_id: ClientId,
        settings: WorkerSettings,
        worker: WorkerContext,
        status: WorkerStatus,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._client_id = client_id
        self._status = status
        self._fence = Fence(settings.timeout, settings.interval, clock, asyncio.get_running_loop().time)
        self._beats = Heartbeats(client, client_id, settings, clock=clock, show=self._show)
        self._draining = False
        self._drain_until = float("inf")
        #: Limit of everything that the beat waits for; it expires when the drain has to be over.
        self._limit: asyncio.Timeout | None = None
        #: The error of a channel that ends the worker; the session is drained first.
        self.fatal: TunnelError | None = None
        context = ClientContext(
            client,
            client_id,
            settings,
            self._fence,
            worker,
            status,
            beat_soon=self._beats.due.set,
            end_worker=self._drain_after,
        )
        self._channels = HeldChannels(context)
        self._watch = CompletionWatch(context, self._channels.progress, self._drain_if_complete)

    def __repr__(self) -> str:
        return f"Session({self._client_id}, {self._channels})"

    @property
    def in_doubt(self) -> float:
        """Seconds for which a write of this client may still take effect; 0 when none may."""
        return self._fence.in_doubt

    async def run(self) -> SessionEnd:
        """Beat until the session ends.

        Raises:
            ParameterInvalid, TunnelExpired, PermissionDenied: the tunnel cannot be consumed.
        """
        self._status.client_id = self._client_id
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._watch.run(), name="completion")
                try:
                    return await self._beat_until_end(tasks)
                finally:
                    watching.cancel()
                    self._fence.revoke()
                    self._channels.leave()
        except BaseExceptionGroup as group:
            raise first_error(group) from group
        finally:
            self._status.last_heartbeat = None

    def drain(self, seconds: float | None = None) -> None:
        """Hand every channel back and take no new ones; heartbeats continue until all are reported.

        Args:
            seconds: that the drain may take; None means those of the settings.
        """
        if self._draining:
            return
        self._draining = True
        seconds = self._settings.drain if seconds is None else seconds
        self._drain_until = self._clock() + seconds
        self._limit_drain(seconds)
        self._channels.drain()
        self._beats.due.set()

    async def _beat_until_end(self, tasks: asyncio.TaskGroup) -> SessionEnd:
        self._limit = limit = asyncio.timeout(None)
        try:
            async with limit:
                self._limit_drain(self._drain_until - self._clock())
                return await self._beat_until_done(tasks)
        except TimeoutError:
            if not limit.expired():
                raise
            return SessionEnd.OVERDUE  # a heartbeat hangs longer than the drain may take
        finally:
            self._limit = None

    def _limit_drain(self, seconds: float) -> None:
        if self._draining and self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time() + seconds)

    async def _beat_until_done(self, tasks: asyncio.TaskGroup) -> SessionEnd:
        began = self._clock()
        while True:
            sent_at = self._clock()
            self._beats.due.clear()
            all_over = self._channels.all_over
            try:
                answer = await self._beats.send(self._channels.report())
            except ResourceGone:
                return SessionEnd.GONE
            if answer is not None:
                self._fence.heartbeat_answered(sent_at)
                self._status.last_heartbeat = self._status.wall()
                if self._draining and all_over:
                    return SessionEnd.DRAINED
                if self._channels.apply(answer, tasks):
                    self._watch.channel_gained()
            self._status.sample()
            if self._clock() - max(began, self._fence.answered) > self._settings.timeout:
                return SessionEnd.TIMED_OUT
            if self._clock() > self._drain_until:
                return SessionEnd.OVERDUE
            spacing, interval = self._settings.early_spacing, self._settings.interval
            pause = interval if answer is not None else min(interval, spacing)
            await self._beats.wait_for_turn(max(spacing, pause - (self._clock() - sent_at)), lambda: self._drain_until)

    def _drain_if_complete(self) -> None:
        if self._settings.exit_when_complete:
            self.drain()

    def _drain_after(self, error: TunnelError) -> None:
        self.fatal = self.fatal or error
        self._status.error = f"{type(error).__name__}: {error}"
        self.drain()

    def _show(self, error: TunnelError | None) -> None:
        """Show the error of the last heartbeat in the status; an error that ends the worker stays there."""
        if self.fatal is None:
            self._status.error = None if error is None else f"{type(error).__name__}: {error}"
