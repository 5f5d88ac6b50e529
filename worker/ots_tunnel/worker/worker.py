"""The worker: opens the sink, connects, runs one session after another, and drains.

`run` ends when the worker is drained or closed, when the tunnel is complete and the settings ask for it, or with an
error that a new client cannot fix. A session that lost its client is followed by another one with a new client.
`drain` hands the channels back first; `close` abandons everything. A client is shut down only when no write of it may
still take effect, since the call frees its channels at once.

Source: docs/protocol.md 5.2, 5.9, 5.10; docs/architecture.md rules 3 and 5.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import InvalidTransition, TunnelError
from ots_tunnel.fence import boottime
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ClientId
from ots_tunnel.protocol.lifecycle import ClientEvent, ClientState
from ots_tunnel.rate import RateLimit
from ots_tunnel.sinks import Sink
from ots_tunnel.sinks.tally import TallyCollector
from ots_tunnel.worker.cancellation import is_cancelled
from ots_tunnel.worker.context import WorkerContext
from ots_tunnel.worker.gaps.guard import GapGuard
from ots_tunnel.worker.pages.budget import LEAST_PAGE_BYTES, ByteBudget
from ots_tunnel.worker.session.heartbeats import PASSING
from ots_tunnel.worker.session.session import Session, SessionEnd
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.start import Start
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.worker_status import WorkerStatus
from ots_tunnel.worker.stop_order import StopOrder

logger = logging.getLogger(__name__)

#: Seconds that the Shutdown call may take; own choice. Without the call the channels are free after the timeout.
SHUTDOWN_TIMEOUT = 5.0


class TunnelWorker:
    """Consumes one tunnel into one sink.

    Args:
        client: connection to the service; the caller closes it.
        sink: opened and closed by `run`.
        preflight: called before the sink is opened; its error ends `run`.
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
        read_mark: Callable[[], float | None] | None = None,
        clock: Callable[[], float] = boottime,
        entropy: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._sink = sink
        self._settings = settings
        self._clock = clock
        self._preflight = preflight
        self._read_mark = read_mark or (lambda: settings.read_mark)
        self._metrics = metrics or WorkerMetrics(settings.tunnel_name)
        self.status = WorkerStatus(settings.tunnel_id, settings.client_tag, self._metrics)
        #: Whether a drain was cut off at its limit, so that channels were not handed back.
        self.overdue = False
        self._begun = False
        self._order = StopOrder(settings.reconnect, entropy)
        self._start = Start(settings, self.status, self._order)
        #: When the drain has to be over, by `clock`.
        self._drain_until = float("inf")
        self._session: Session | None = None
        self._running: asyncio.Task[SessionEnd] | None = None
        client.listen_to_retries(self._metrics.call_repeated)
        self.status.tally, self.status.contact = sink.tally, sink.contact
        self._metrics.registry.register(TallyCollector(self._metrics.tunnel, sink.tally))

    def __repr__(self) -> str:
        return f"TunnelWorker({self._settings.client_tag}, {self._session})"

    async def run(self) -> None:
        """Consume until drained, closed or, with `exit_when_complete`, until the tunnel is complete.

        Raises:
            ServiceError: the tunnel cannot be consumed. SinkRejected: the sink refused records permanently.
            PossibleGap: changes may be missing, and the settings say Stop.
            InvalidTransition: a worker runs once; make a new one.
        """
        if self._begun:
            raise InvalidTransition(self.status.state.value, "a second run")
        self._begun = True
        settings = self._settings
        self.status.budget = ByteBudget(settings.memory_budget_bytes, self._sink.cost.of(LEAST_PAGE_BYTES, 0))
        parallel = settings.max_parallel_channels
        context = WorkerContext(
            self._sink,
            self._metrics,
            self.status.budget,
            RateLimit(settings.rows_per_second),
            asyncio.Semaphore(parallel) if parallel else None,
            settings.end_us,
            GapGuard(self._client, settings, self.status, self._metrics, self._read_mark, clock=self._clock),
        )
        try:
            await self._start.run_preflight(self._preflight)
            await self._start.open_sink(self._sink)
            while not self._order.is_given:
                self.status.error = None
                client_id = await self._start.connect(self._client)
                if client_id is not None and not await self._run_session(client_id, context):
                    return
        except TunnelError as error:
            self.status.error = f"{type(error).__name__}: {error}"
            self.status.happened(ClientEvent.REFUSED)
            raise
        finally:
            if self.status.state is not ClientState.ENDED:
                self.status.happened(ClientEvent.STOPPED)
            await self._sink.close()

    def drain(self) -> None:
        """Stop reading, finish the pages being written, store checkpoints, hand the channels back, end `run`."""
        now = self._clock()
        if not self._order.is_given:
            logger.info("draining", extra=self._extra(LogAction.DRAINING))
            self._drain_until = now + self._settings.drain
        self.status.draining = True
        self._order.give()
        self._start.drain(self._drain_until - self._settings.drain + self._settings.abandon_after - now)
        if self._session is not None:
            self._session.drain(self._drain_until - now)

    def close(self) -> None:
        """End `run` at once: writes are abandoned, no checkpoint is stored any more."""
        logger.warning("closing at once", extra=self._extra(LogAction.CLOSING_AT_ONCE))
        self._order.give(at_once=True)
        self._start.close()
        if self._running is not None:
            self._running.cancel()

    def interrupt(self) -> None:
        """Drain; a second call closes."""
        if self.status.draining:
            self.close()
        else:
            self.drain()

    async def _run_session(self, client_id: ClientId, context: WorkerContext) -> bool:
        """Run one session; True when another one is to follow."""
        session = Session(self._client, client_id, self._settings, context, self.status, self._clock)
        self._session = session
        if self._order.is_given:
            session.drain(self._drain_until - self._clock())
        end: SessionEnd | None = None
        self._running = asyncio.create_task(session.run(), name=f"session {client_id}")
        try:
            end = await self._running
            self.overdue = end is SessionEnd.OVERDUE
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            # `close` has cancelled the session.
        finally:
            self._running = None
            self._session = None
            await self._shut_down_client(client_id, session, end)
        if session.fatal is not None:
            raise session.fatal
        if end is SessionEnd.GONE or end is SessionEnd.TIMED_OUT:
            logger.warning(
                "client lost: %s", end.value, extra={**self._extra(LogAction.CLIENT_GONE), "client_id": client_id}
            )
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
            logger.info("shutdown call failed", extra={**self._extra(LogAction.SHUTDOWN_FAILED), "error": str(error)})

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

    def _extra(self, action: LogAction) -> dict[str, object]:
        return {"action": action, "tunnel_id": self._settings.tunnel_id}
