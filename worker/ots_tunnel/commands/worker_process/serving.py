"""A worker beside its status server, until it ends or a signal stops it."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ots_tunnel.commands.worker_process.ending import Ending, ending
from ots_tunnel.commands.worker_process.last_resort import OVERDUE_AFTER, LastResort
from ots_tunnel.commands.worker_process.noticed_signals import noticed_signals
from ots_tunnel.forks.signals import SIGNALS
from ots_tunnel.log_actions import LogAction

if TYPE_CHECKING:
    from ots_tunnel.config import HttpConfig
    from ots_tunnel.worker.status.worker_status import WorkerStatus

logger = logging.getLogger(__name__)


class Runnable(Protocol):
    """A worker, of a tunnel or of a stream."""

    status: WorkerStatus
    overdue: bool

    async def run(self) -> None:
        """Consume until drained or closed."""
        ...

    def interrupt(self) -> None:
        """Drain; a second call closes."""
        ...


async def run_worker(
    worker: Runnable,
    close: Callable[[], Awaitable[None]],
    http: HttpConfig,
    drain_seconds: float,
    last_resort: LastResort,
) -> list[int]:
    """Run a worker with its status server; the first signal drains it. Returns the signals that came.

    Args:
        close: closes the worker's connections afterwards.
        last_resort: begins with the first signal.

    Raises:
        ConfigError: the server's address cannot be used. TunnelError: the worker's.
    """
    from ots_tunnel.protocol.plainbuffer.compiled import NOT_COMPILED
    from ots_tunnel.worker.status.server import StatusServer

    loop = asyncio.get_running_loop()
    last_resort.seconds = drain_seconds + OVERDUE_AFTER
    signals: list[int] = []

    def interrupt(number: int) -> None:
        signals.append(number)
        last_resort.begin()  # here as well: user code that adds a handler to the loop takes the notice away
        worker.interrupt()

    for number in SIGNALS:  # the first one drains, a second one closes
        loop.add_signal_handler(number, interrupt, number)
    # Pages create many short-lived objects without cycles, which the collector's default thresholds inspect in vain.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    with noticed_signals(SIGNALS, last_resort.begin):
        try:
            async with StatusServer(worker.status, http.host, http.port) as server:
                started = {"tunnel_id": worker.status.tunnel_id, "url": server.url}
                logger.info("worker started", extra={"action": LogAction.STARTED, **started})
                if NOT_COMPILED is not None:
                    logger.warning(
                        "records are decoded in Python, which is many times slower",
                        extra={"action": LogAction.NOT_COMPILED, "reason": NOT_COMPILED},
                    )
                await worker.run()
        finally:
            await close()
    return signals


def ended(worker: Runnable, signals: Sequence[int], *, complete: bool | None = None) -> Ending:
    """The end of a run without an error, which is logged; see `ending`."""
    end = ending(signals, complete=complete, overdue=worker.overdue)
    status = worker.status
    consumed = {"tunnel_id": status.tunnel_id, "rows": status.metrics.rows_total, "bytes": status.metrics.bytes_total}
    logger.info(
        ": ".join(filter(None, ("worker stopped", end.reason))), extra={"action": LogAction.STOPPED, **consumed}
    )
    return end
