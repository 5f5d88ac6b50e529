"""One client's life: heartbeats, and the channels they bring and take.

The heartbeat waits for nothing but its own answer and its next turn (docs/architecture.md rule 6). A session ends
when the client is gone, when it is drained, or by an error that a new client cannot mend.
Source: docs/protocol.md 5.2, 5.3, 5.6, 5.10.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import (
    CodecError,
    ParameterInvalid,
    PermissionDenied,
    ResourceGone,
    ServiceError,
    TransportError,
    TunnelError,
    TunnelExpired,
    first_error,
)
from ots_tunnel.fence import Fence, boottime
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import Channel, ChannelId, ClientId
from ots_tunnel.model import ChannelStatus as Status
from ots_tunnel.protocol import channel as machine
from ots_tunnel.protocol.assignment import merge
from ots_tunnel.worker.channel import ChannelTask
from ots_tunnel.worker.context import ClientContext, WorkerContext
from ots_tunnel.worker.end_time import Completion, completion
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status import WorkerStatus

logger = logging.getLogger(__name__)

#: No new client can mend these (docs/protocol.md 5.3).
TERMINAL = (ParameterInvalid, TunnelExpired, PermissionDenied)
#: The next try may go better; an answer that makes no sense is a balancer's page for the moment.
PASSING = (TransportError, ServiceError, CodecError)
#: A worker without channels asks this many intervals apart whether the tunnel is complete; describing is expensive.
COMPLETION_CHECK_INTERVALS = 3
#: Heartbeats after which a channel that waits at the end time will not be opened any more (docs/architecture.md 3).
SETTLING_BEATS = 2


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
        context: WorkerContext,
        status: WorkerStatus,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._client = client
        self._client_id = client_id
        self._status = status
        self._fence = Fence(settings.timeout, settings.interval, clock, asyncio.get_running_loop().time)
        self._report_due = asyncio.Event()
        self._channels: dict[ChannelId, ChannelTask] = {}
        self._draining = False
        self._drain_until = float("inf")
        #: What ended the worker for good while the session was drained in order.
        self.fatal: TunnelError | None = None
        self._context = ClientContext(
            client,
            client_id,
            settings,
            self._fence,
            context,
            status,
            beat_soon=self._report_due.set,
            end_worker=self._end_worker,
        )

    def __repr__(self) -> str:
        return f"Session({self._client_id}, {len(self._channels)} channels)"

    @property
    def in_doubt(self) -> float:
        """Seconds for which a write of this client may still take effect; 0 when none may."""
        return self._fence.in_doubt

    async def run(self) -> SessionEnd:
        """Beat until the session ends.

        Raises:
            ParameterInvalid, TunnelExpired, PermissionDenied: the tunnel is not to be had.
        """
        self._status.client_id = self._client_id
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._watch_completion(), name="completion")
                try:
                    return await self._beat(tasks)
                finally:
                    watching.cancel()
                    self._leave()
        except BaseExceptionGroup as group:
            raise first_error(group) from group
        finally:
            self._status.last_heartbeat = None

    def drain(self) -> None:
        """Hand every channel back; new ones are not taken. The heartbeat goes on until all is reported."""
        if self._draining:
            return
        self._draining = True
        self._drain_until = self._clock() + self._settings.drain
        for task in self._channels.values():
            task.feed(machine.Drain())
        self._report_due.set()

    async def _beat(self, tasks: asyncio.TaskGroup) -> SessionEnd:
        began = self._clock()
        while True:
            sent_at = self._clock()
            self._report_due.clear()
            all_over = all(task.is_over for task in self._channels.values())
            pause = self._settings.interval
            try:
                answer = await self._client.heartbeat(
                    self._settings.tunnel_id, self._client_id, self._report(), timeout=self._request_timeout()
                )
            except ResourceGone:
                return SessionEnd.GONE
            except TERMINAL:
                raise
            except PASSING as error:
                # The rest of the timeout is best used for trying again soon.
                pause = min(pause, self._settings.early_spacing)
                logger.warning(
                    "heartbeat failed", extra={**self._extra(LogAction.HEARTBEAT_FAILED), "error": str(error)}
                )
                self._say(error)
            else:
                self._say(None)
                self._fence.heartbeat_answered(sent_at)
                self._status.last_heartbeat = self._status.wall()
                if self._draining and all_over:
                    return SessionEnd.DRAINED
                self._take(answer, tasks)
            self._status.sample()
            if self._clock() - max(began, self._fence.answered) > self._settings.timeout:
                return SessionEnd.TIMED_OUT
            if self._clock() > self._drain_until:
                return SessionEnd.OVERDUE
            await self._pause(max(self._settings.early_spacing, pause - (self._clock() - sent_at)))

    async def _pause(self, seconds: float) -> None:
        least = min(seconds, self._settings.early_spacing)
        await asyncio.sleep(least)
        try:
            async with asyncio.timeout(min(seconds, max(0.0, self._drain_until - self._clock())) - least):
                await self._report_due.wait()
        except TimeoutError:
            pass  # no news: the regular beat

    def _take(self, answer: tuple[Channel, ...], tasks: asyncio.TaskGroup) -> None:
        assignment = merge({key: task.channel for key, task in self._channels.items()}, answer)
        for channel_id in assignment.vanished:
            self._drop(channel_id)
        for channel_id in assignment.fresh:
            error = self._drop(channel_id) if channel_id in self._channels else None
            if not self._draining:
                task = ChannelTask(self._context, assignment.channels[channel_id], error)
                self._channels[channel_id] = task
                tasks.create_task(task.run(), name=f"events {channel_id}")
        for channel_id, task in self._channels.items():
            task.feed(machine.Notified(assignment.channels[channel_id]))

    def _drop(self, channel_id: ChannelId) -> str | None:
        task = self._channels.pop(channel_id)
        task.feed(machine.Vanished())
        return task.progress.error

    def _leave(self) -> None:
        self._fence.revoke()
        for task in self._channels.values():
            task.feed(machine.Vanished())

    def _report(self) -> list[Channel]:
        return [task.channel for task in self._channels.values() if task.channel.status is not Status.WAIT]

    def _request_timeout(self) -> float:
        # One hanging answer must not cost more than one beat.
        return max(self._settings.interval, self._settings.early_spacing)

    def _end_worker(self, error: TunnelError) -> None:
        self.fatal = self.fatal or error
        self._status.error = f"{type(error).__name__}: {error}"
        self.drain()

    def _say(self, error: TunnelError | None) -> None:
        """What a heartbeat met, to be seen until one is answered; what ends the worker stays."""
        if self.fatal is None:
            self._status.error = None if error is None else f"{type(error).__name__}: {error}"

    async def _watch_completion(self) -> None:
        """Find out whether the tunnel is complete; with an end time it may become incomplete again by a hand-over."""
        settings, beats = self._settings, 0
        while not self._status.completed or settings.end_us is not None:
            await asyncio.sleep(settings.interval)
            done = {key for key, task in self._channels.items() if task.progress.end_reached}
            if len(done) < len(self._channels):
                self._status.completed, beats = False, 0
                continue
            if not settings.tunnel_name or not self._status.is_ready:
                continue
            try:
                tunnel = await self._client.describe_tunnel(settings.table, settings.tunnel_name, settings.tunnel_id)
            except PASSING:
                continue  # the heartbeat says what is wrong
            beats += 1
            self._judge(completion(tunnel, self._client_id, done, settled=beats > SETTLING_BEATS))
            if not done:
                await asyncio.sleep(settings.interval * (COMPLETION_CHECK_INTERVALS - 1))

    def _judge(self, found: Completion) -> None:
        before, self._status.completed = self._status.completed, found is not Completion.OPEN
        if found is Completion.ALL and not before:
            logger.info("every channel is done", extra=self._extra(LogAction.COMPLETED))
        if found in (Completion.ALL, Completion.THEIRS) and self._settings.exit_when_complete:
            self.drain()

    def _extra(self, action: LogAction) -> dict[str, object]:
        return {"action": action, "tunnel_id": self._settings.tunnel_id, "client_id": self._client_id}
