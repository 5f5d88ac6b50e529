"""`ots-tunnel run`: consume a tunnel until it ends or the process is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from pathlib import Path

import click

from ots_tunnel.config import WorkerConfig, load_config
from ots_tunnel.console.exit_codes import exit_code
from ots_tunnel.console.explanations import Place, explained
from ots_tunnel.errors import TunnelError
from ots_tunnel.log_actions import LogAction

logger = logging.getLogger(__name__)

#: Kubernetes shows 4096 bytes.
TERMINATION_LOG_BYTES = 4000


@click.command()
@click.option("--config", "path", required=True, type=click.Path(path_type=Path), help="Worker document (YAML).")
@click.option(
    "--log-level",
    default="INFO",
    show_default=True,
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
)
@click.option("--exit-when-complete", is_flag=True, help="End when every channel of the tunnel is terminated.")
@click.option(
    "--termination-log",
    default="/dev/termination-log",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where to say in one line what ended the worker, if the file is there: Kubernetes makes and shows it.",
)
def run(path: Path, log_level: str, exit_when_complete: bool, termination_log: Path) -> None:
    """Consume a tunnel into a sink; what a worker's pod runs.

    SIGTERM and SIGINT drain: finish what is being written, store checkpoints, hand the channels back. A second
    signal closes at once. `ots-tunnel --help` lists the exit codes.
    """
    from ots_tunnel.logs import set_up_logs

    set_up_logs(log_level)
    place: Place | None = None
    try:
        config = load_config(path)
        place = Place.of_source(config.source)
        asyncio.run(consume(config, exit_when_complete=exit_when_complete))
    except TunnelError as error:
        text = f"{type(error).__name__}: {error if place is None else explained(error, place)}"
        leave_message(text, termination_log)
        logger.error("worker ends", extra={"action": LogAction.TERMINAL_ERROR, "error": text})
        sys.exit(exit_code(error))
    except Exception as error:
        leave_message(f"{type(error).__name__}: {error}", termination_log)
        logger.exception("worker ends on an unexpected error", extra={"action": LogAction.TERMINAL_ERROR})
        sys.exit(exit_code(error))


async def consume(config: WorkerConfig, *, exit_when_complete: bool = False) -> None:
    """Run one worker of this document with its status server.

    Raises:
        ConfigError, ServiceError, WrongTunnel, SinkRejected: what ended it for good.
    """
    from ots_tunnel.client.tunnel import TunnelClient
    from ots_tunnel.commands.preflight import check_tunnel
    from ots_tunnel.credentials import FileCredentials
    from ots_tunnel.sinks.choice import open_sink
    from ots_tunnel.worker.allocator import keep_freed_memory
    from ots_tunnel.worker.metrics import WorkerMetrics
    from ots_tunnel.worker.settings import WorkerSettings
    from ots_tunnel.worker.status_server import StatusServer
    from ots_tunnel.worker.worker import TunnelWorker

    source = config.source
    credentials = FileCredentials(source.credentials.directory).checked("source.credentials.directory")
    settings = WorkerSettings.of(config, exit_when_complete=exit_when_complete)
    sink = open_sink(config)
    client = TunnelClient(source.endpoint, source.instance, credentials)
    metrics = WorkerMetrics(source.tunnel_name, config.sink.kind)
    worker = TunnelWorker(client, sink, settings, metrics=metrics, preflight=lambda: check_tunnel(client, source))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.interrupt)
    # Pages bring many short-lived objects without cycles: the collector's default pace is wasted on them.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    keep_freed_memory()
    try:
        async with StatusServer(worker.status, config.http.host, config.http.port) as server:
            logger.info(
                "worker started", extra={"action": LogAction.STARTED, "tunnel_id": source.tunnel_id, "url": server.url}
            )
            await worker.run()
    finally:
        await client.close()
    stopped = {"tunnel_id": source.tunnel_id, "rows": metrics.rows_total, "bytes": metrics.bytes_total}
    logger.info("worker stopped", extra={"action": LogAction.STOPPED, **stopped})


def leave_message(text: str, path: Path) -> None:
    """Leave one line where Kubernetes looks for it; outside a pod there is no such file, and none is made."""
    try:
        with path.open("r+") as log:
            log.write(text.splitlines()[0].encode()[:TERMINATION_LOG_BYTES].decode(errors="ignore") + "\n")
            log.truncate()
    except OSError:
        return
