"""The worker: opens the sink, connects, runs one session after another, and drains.

`run` ends when the worker is drained or closed, when the tunnel is complete and the settings ask for it, or with an
error that a new client cannot fix. A session that lost its client is followed by another one with a new client.
`drain` hands the channels back first; `close` abandons everything. A client is shut down only when no write of it may
still take effect, since the call frees its channels at once.

Source: docs/protocol.md 5.2, 5.9, 5.10; docs/architecture.md rules 3 and 5.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.fence import boottime
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelId, ClientId
from ots_tunnel.protocol.lifecycle import ClientEvent
from ots_tunnel.sinks import Sink
from ots_tunnel.worker.context import WorkerContext
from ots_tunnel.worker.gaps.guard import GapGuard
from ots_tunnel.worker.run import WorkerRun
from ots_tunnel.worker.session.heartbeats import PASSING
from ots_tunnel.worker.session.session import Session, SessionEnd
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status.metrics import WorkerMetrics

logger = logging.getLogger(__name__)

#: Seconds that the Shutdown call may take; own choice. Without the call the channels are free after the timeout.
SHUTDOWN_TIMEOUT = 5.0


class TunnelWorker:
    """Consumes one tunnel into one sink.

    Args:
        client: connection to the service; the caller closes it.
        sink: opened and closed by `run`.
        preflight: called before the sink is opened; its error ends `run`.
        read_mark: see `GapGuard`; by default that of the settings, which holds for every channel.
        clock, entropy: replaced in tests.
    """

    def __init__(
        self,
        client: TunnelClient,
        sink: Sink,
        settings: WorkerSettings,
        *,
        metrics: WorkerMetrics | None = None,
        preflight: Callable[[], Awaitable[None]] | None = None,
        read_mark: Callable[[ChannelId], float | None] | None = None,
        clock: Callable[[], float] = boottime,
        entropy: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._preflight = preflight
        self._read_mark = read_mark or (lambda _: settings.read_mark)
        self._run = WorkerRun(client, sink, settings, metrics, entropy, self._drain)
        self._order = self._run.order
        self.status = self._run.status
        #: Whether a drain was cut off at its limit, so that channels were not handed back.
        self.overdue = False
        #: When the drain has to be over, by `clock`.
        self._drain_until = float("inf")
        self._session: Session | None = None

    def __repr__(self) -> str:
        return f"TunnelWorker({self._settings.client_tag}, {self._session})"

    async def run(self) -> None:
        """Consume until drained, closed or, with `exit_when_complete`, until the tunnel is complete.

        Raises:
            ServiceError: the tunnel cannot be consumed. SinkRejected: the sink refused records permanently.
            PossibleGap: changes may be missing, and the settings say Stop.
            InvalidTransition: a worker runs once; make a new one.
        """
        gaps = GapGuard(
            self._client, self._settings, self.status, self._run.metrics, self._read_mark, clock=self._clock
        )
        await self._run.run(self._consume, preflight=self._preflight, gaps=gaps)

    def drain(self) -> None:
        """Stop reading, finish the pages being written, store checkpoints, hand the channels back, end `run`."""
        self._run.drain()

    def close(self) -> None:
        """End `run` at once: writes are abandoned, no checkpoint is stored any more."""
        self._run.close()

    def interrupt(self) -> None:
        """Drain; a second call closes."""
        self._run.interrupt()

    def _drain(self, is_first: bool) -> None:
        now = self._clock()
        if is_first:
            self._drain_until = now + self._settings.drain
        self._run.start.drain(self._drain_until - self._settings.drain + self._settings.abandon_after - now)
        if self._session is not None:
            self._session.drain(self._drain_until - now)

    async def _consume(self, context: WorkerContext) -> None:
        while not self._order.is_given:
            self.status.error = None
            client_id = await self._run.start.connect(self._client)
            if client_id is not None and not await self._run_session(client_id, context):
                return

    async def _run_session(self, client_id: ClientId, context: WorkerContext) -> bool:
        """Run one session; True when another one is to follow."""
        session = Session(self._client, client_id, self._settings, context, self.status, self._clock)
        self._session = session
        if self._order.is_given:
            session.drain(self._drain_until - self._clock())
        end: SessionEnd | None = None
        try:
            end = await self._run.unless_closed(session.run(), f"session {client_id}")
            self.overdue = end is SessionEnd.OVERDUE
        finally:
            self._session = None
            await self._shut_down_client(client_id, session, end)
        if session.fatal is not None:
            raise session.fatal
        if end is SessionEnd.GONE or end is SessionEnd.TIMED_OUT:
            fields = {**self._run.log_fields(LogAction.CLIENT_GONE), "client_id": client_id}
            logger.warning("client lost: %s", end.value, extra=fields)
            self.status.happened(ClientEvent.LOST)
            if not self.status.tunnel_done:
                self.status.completed = False  # channels of other clients may come free, unseen
            await self._order.pause_before_retry()
            return True
        return False

    async def _shut_down_client(self, client_id: ClientId, session: Session, end: SessionEnd | None) -> None:
        """Shut the client down, but not while a write of it may still take effect."""
        if end is SessionEnd.GONE:
            await self._order.wait(session.in_doubt)  # the next client of this worker must not read beside the write
            return
        if session.in_doubt and (end is None or end is SessionEnd.OVERDUE or not await self._outlasts(session)):
            # No time is left to wait. The heartbeat timeout frees the channels later than the write can last.
            return
        try:
            await self._client.shutdown(self._settings.tunnel_id, client_id, timeout=SHUTDOWN_TIMEOUT)
        except PASSING as error:
            fields = {**self._run.log_fields(LogAction.SHUTDOWN_FAILED), "error": str(error)}
            logger.info("shutdown call failed", extra=fields)

    async def _outlasts(self, session: Session) -> bool:
        """Wait until no write of a session may take effect; False where the worker has to end before."""
        while doubt := session.in_doubt:
            if not self._order.is_given:
                await self._order.wait(doubt)
                continue
            left = self._drain_until - self._clock()
            if self._order.is_urgent or left <= 0:
                return False
            await self._order.wait_unless_urgent(min(doubt, left))
        return True
