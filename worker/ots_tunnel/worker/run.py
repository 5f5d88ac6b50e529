"""The run of a worker around what it consumes: a tunnel (`worker`), or shards (`stream.sinking.worker`).

A run opens the sink, lets the worker consume, and closes the sink. The orders to stop are the same for every worker:
`drain` lets it finish and hand over what it holds; `close` cancels what it does; `interrupt`, the order of a signal, is
the first of them, and then the other one. What a drain means beyond that is the worker's matter (`on_drain`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from ots_tunnel.client.caller import RetryListener
from ots_tunnel.errors import InvalidTransition, TunnelError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol.lifecycle import ClientEvent, ClientState
from ots_tunnel.rate import RateLimit
from ots_tunnel.sinks import Sink
from ots_tunnel.sinks.tally import TallyCollector
from ots_tunnel.worker.cancellation import is_cancelled
from ots_tunnel.worker.context import WorkerContext
from ots_tunnel.worker.gaps.guard import GapGuard
from ots_tunnel.worker.pages.budget import LEAST_PAGE_BYTES, ByteBudget
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.start import Start
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.worker_status import WorkerStatus
from ots_tunnel.worker.stop_order import StopOrder

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


class RepeatsCalls(Protocol):
    """A client of the service."""

    def listen_to_retries(self, listener: RetryListener) -> None:
        """Call `listener` with the operation and the error of every call that is repeated from now on."""
        ...


class WorkerRun:
    """One run of a worker; its status, metrics and orders.

    Args:
        client: its repeated calls are counted.
        sink: opened and closed by `run`.
        on_drain: called with every order to drain, and with whether it is the first order to stop.
    """

    def __init__(
        self,
        client: RepeatsCalls,
        sink: Sink,
        settings: WorkerSettings,
        metrics: WorkerMetrics | None,
        entropy: Callable[[], float],
        on_drain: Callable[[bool], None],
    ) -> None:
        self.metrics = metrics or WorkerMetrics(settings.tunnel_name)
        self.status = WorkerStatus(settings.tunnel_id, settings.client_tag, self.metrics)
        self.order = StopOrder(settings.reconnect, entropy)
        self.start = Start(settings, self.status, self.order)
        self._sink = sink
        self._settings = settings
        self._on_drain = on_drain
        self._begun = False
        self._running: asyncio.Task[Any] | None = None
        client.listen_to_retries(self.metrics.call_repeated)
        self.status.tally, self.status.contact = sink.tally, sink.contact
        self.status.passes_gaps = settings.on_possible_gap == "Continue"
        self.metrics.registry.register(TallyCollector(self.metrics.tunnel, sink.tally))

    def __repr__(self) -> str:
        return f"WorkerRun({self._settings.client_tag}, {self.status.state.value})"

    async def run(
        self,
        consume: Callable[[WorkerContext], Awaitable[None]],
        *,
        preflight: Callable[[], Awaitable[None]] | None = None,
        gaps: GapGuard | None = None,
    ) -> None:
        """Open the sink, consume, close the sink.

        Args:
            consume: called once the sink is open, or the worker is to stop.
            preflight: called before the sink is opened.
            gaps: finds changes that may be missing; None where `consume` does so itself.

        Raises:
            InvalidTransition: a worker runs once; make a new one.
            TunnelError: of the preflight, the sink, or `consume`.
        """
        if self._begun:
            raise InvalidTransition(self.status.state.value, "a second run")
        self._begun = True
        context = self._context(gaps)
        try:
            await self.start.run_preflight(preflight)
            await self.start.open_sink(self._sink)
            await consume(context)
        except TunnelError as error:
            self.status.error = f"{type(error).__name__}: {error}"
            self.status.happened(ClientEvent.REFUSED)
            raise
        finally:
            if self.status.state is not ClientState.ENDED:
                self.status.happened(ClientEvent.STOPPED)
            await self._sink.close()

    async def unless_closed(self, consuming: Coroutine[Any, Any, _T], name: str) -> _T | None:
        """The result of a part of the consumption, run as a task; None where `close` or `cut_off` has ended it."""
        running: asyncio.Task[_T] = asyncio.create_task(consuming, name=name)
        self._running = running
        try:
            return await running
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            return None
        finally:
            self._running = None

    def drain(self) -> None:
        """Begin to stop in good order."""
        is_first = not self.order.is_given
        if is_first:
            logger.info("draining", extra=self.log_fields(LogAction.DRAINING))
        self.status.draining = True
        self.order.give()
        self._on_drain(is_first)

    def close(self) -> None:
        """Stop at once: writes are abandoned, no checkpoint is stored any more."""
        logger.warning("closing at once", extra=self.log_fields(LogAction.CLOSING_AT_ONCE))
        self.order.give(at_once=True)
        self.start.close()
        self.cut_off()

    def interrupt(self) -> None:
        """Drain; a second call closes."""
        if self.status.draining:
            self.close()
        else:
            self.drain()

    def cut_off(self) -> bool:
        """Cancel what is under way in `unless_closed`; whether there is anything."""
        return self._running is not None and self._running.cancel()

    def log_fields(self, action: LogAction) -> dict[str, object]:
        """The fields of a log line about the worker."""
        return {"action": action, "tunnel_id": self._settings.tunnel_id}

    def _context(self, gaps: GapGuard | None) -> WorkerContext:
        settings, parallel = self._settings, self._settings.max_parallel_channels
        self.status.budget = ByteBudget(settings.memory_budget_bytes, self._sink.cost.of(LEAST_PAGE_BYTES, 0))
        return WorkerContext(
            self._sink,
            self.metrics,
            self.status.budget,
            RateLimit(settings.rows_per_second),
            asyncio.Semaphore(parallel) if parallel else None,
            settings.end_us,
            gaps,
            self.status.source_clock,
        )
