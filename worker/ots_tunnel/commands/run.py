"""`ots-tunnel run`: consume a tunnel until it ends or a signal stops the process."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import click

from ots_tunnel.commands.ending import Ending, ending
from ots_tunnel.commands.leaving import leave
from ots_tunnel.config import WorkerConfig, load_config
from ots_tunnel.console.examples import examples
from ots_tunnel.console.exit_codes import OTHER_ERROR, exit_code
from ots_tunnel.console.explanations import Place, explanation
from ots_tunnel.errors import TunnelError
from ots_tunnel.log_actions import LogAction

logger = logging.getLogger(__name__)

#: Kubernetes keeps 4096 bytes of a termination message; the rest is room for the line end.
TERMINATION_LOG_BYTES = 4000
#: Seconds after the drain's limit when the process ends anyway: what ends in good order has ended by then.
OVERDUE_AFTER = 2.0


@click.command(
    epilog=examples(
        "ots-tunnel run --config worker.yaml",
        "ots-tunnel run --config worker.yaml --exit-when-complete --log-level DEBUG",
    )
)
@click.option("--config", "path", required=True, type=click.Path(path_type=Path), help="Worker document (YAML).")
@click.option(
    "--log-level",
    default="INFO",
    show_default=True,
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    help="Lowest level of log lines.",
)
@click.option(
    "--exit-when-complete",
    is_flag=True,
    help="End when every channel of the tunnel is read to its end or to source.endTime.",
)
@click.option(
    "--termination-log",
    default="/dev/termination-log",
    show_default=True,
    type=click.Path(path_type=Path),
    help="File for a one-line termination message; used only if it exists, as it does in a Kubernetes pod.",
)
def run(path: Path, log_level: str, exit_when_complete: bool, termination_log: Path) -> None:
    """Consume a tunnel into a sink; the command of a worker's pod.

    SIGTERM and SIGINT drain: running writes finish, checkpoints are stored, channels are handed back. A second signal
    closes at once. With --exit-when-complete the command exits with 0 only when every channel is read, with 6 when its
    share is, and another client holds the rest. `ots-tunnel --help` lists the exit codes.
    """
    from ots_tunnel.logs import set_up_logs

    set_up_logs(log_level)
    place: Place | None = None
    try:
        config = load_config(path)
        place = Place.of_source(config.source)
        end = asyncio.run(consume(config, path, exit_when_complete=exit_when_complete))
    except TunnelError as error:
        text = f"{type(error).__name__}: {error if place is None else explanation(error, place)}"
        write_termination_message(text, termination_log)
        logger.error("worker ends", extra={"action": LogAction.TERMINAL_ERROR, "error": text})
        leave(exit_code(error))
    except Exception as error:
        # the pod's termination message has to say why it ended, also for a bug
        write_termination_message(f"{type(error).__name__}: {error}", termination_log)
        logger.exception("worker ends on an unexpected error", extra={"action": LogAction.TERMINAL_ERROR})
        leave(exit_code(error))
    if end.reason:
        write_termination_message(end.reason, termination_log)
    leave(end.code)


async def consume(config: WorkerConfig, path: Path, *, exit_when_complete: bool = False) -> Ending:
    """Run one worker of a document, with its status server.

    Args:
        path: of the document, whose read mark may be renewed.

    Raises:
        ConfigError, ServiceError, WrongTunnel, SinkRejected: the terminal error.
    """
    from ots_tunnel.allocator import keep_freed_memory
    from ots_tunnel.client.tunnel import TunnelClient
    from ots_tunnel.commands.preflight import check_tunnel
    from ots_tunnel.credentials import FileCredentials
    from ots_tunnel.protocol.plainbuffer.compiled import NOT_COMPILED
    from ots_tunnel.sinks.choice import open_sink
    from ots_tunnel.worker.gaps.read_mark import RenewedMark
    from ots_tunnel.worker.settings import WorkerSettings
    from ots_tunnel.worker.status.metrics import WorkerMetrics
    from ots_tunnel.worker.status.server import StatusServer
    from ots_tunnel.worker.worker import TunnelWorker

    keep_freed_memory()  # before the sink imports Arrow
    source = config.source
    credentials = FileCredentials(source.credentials.directory).checked("source.credentials.directory")
    settings = WorkerSettings.of(config, exit_when_complete=exit_when_complete)
    sink = open_sink(config)
    client = TunnelClient(source.endpoint, source.instance, credentials)
    metrics = WorkerMetrics(source.tunnel_name, config.sink.kind)
    worker = TunnelWorker(
        client,
        sink,
        settings,
        metrics=metrics,
        preflight=lambda: check_tunnel(client, source),
        read_mark=RenewedMark(path, config),
    )
    loop = asyncio.get_running_loop()
    last_resort = LastResort(config.client.drain_seconds + OVERDUE_AFTER)

    signals: list[int] = []

    def interrupt(number: int) -> None:
        signals.append(number)
        last_resort.begin()
        worker.interrupt()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, interrupt, number)
    # Pages create many short-lived objects without cycles, which the collector's default thresholds inspect in vain.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    try:
        async with StatusServer(worker.status, config.http.host, config.http.port) as server:
            logger.info(
                "worker started", extra={"action": LogAction.STARTED, "tunnel_id": source.tunnel_id, "url": server.url}
            )
            if NOT_COMPILED is not None:
                logger.warning(
                    "records are decoded in Python, which is many times slower",
                    extra={"action": LogAction.NOT_COMPILED, "reason": NOT_COMPILED},
                )
            await worker.run()
    finally:
        await client.close()
        last_resort.cancel()
    stopped = {"tunnel_id": source.tunnel_id, "rows": metrics.rows_total, "bytes": metrics.bytes_total}
    complete = worker.status.tunnel_done if exit_when_complete else None
    end = ending(signals, complete=complete, overdue=worker.overdue)
    logger.info(": ".join(filter(None, ("worker stopped", end.reason))), extra={"action": LogAction.STOPPED, **stopped})
    return end


class LastResort:
    """Ends the process when a drain takes too long, whatever hangs: a thread's call, or the event loop itself.

    Args:
        seconds: from the first order to drain.
        end: ends the process at once.
    """

    def __init__(self, seconds: float, end: Callable[[int], object] = os._exit) -> None:
        self._seconds = seconds
        self._end = end
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        """The order to drain has come; a later one changes nothing."""
        if self._timer is None:
            self._timer = threading.Timer(self._seconds, self._give_up)
            self._timer.daemon = True
            self._timer.start()

    def cancel(self) -> None:
        """The drain is over."""
        if self._timer is not None:
            self._timer.cancel()

    def _give_up(self) -> None:
        logger.critical(
            "the drain is overdue: the process ends",
            extra={"action": LogAction.DRAIN_OVERDUE, "seconds": self._seconds},
        )
        logging.shutdown()
        self._end(OTHER_ERROR)


def write_termination_message(text: str, path: Path) -> None:
    """Write the first line of `text` as the termination message; outside a pod the file does not exist and stays so."""
    try:
        with path.open("r+") as log:
            log.write(text.splitlines()[0].encode()[:TERMINATION_LOG_BYTES].decode(errors="ignore") + "\n")
            log.truncate()
    except OSError:
        return
