"""`ots-tunnel run`: consume a tunnel until it ends or a signal stops the process."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ots_tunnel.commands.worker_process.checked_document import worker_config
from ots_tunnel.commands.worker_process.ending import Ending
from ots_tunnel.commands.worker_process.last_resort import LastResort
from ots_tunnel.commands.worker_process.options import worker_options
from ots_tunnel.commands.worker_process.process import run_and_leave
from ots_tunnel.commands.worker_process.serving import ended, run_worker
from ots_tunnel.console.examples import examples
from ots_tunnel.console.explanations import Place

if TYPE_CHECKING:
    from ots_tunnel.config import WorkerConfig


@click.command(
    epilog=examples(
        "ots-tunnel run --config worker.yaml",
        "ots-tunnel run --config worker.yaml --exit-when-complete --log-level DEBUG",
    )
)
@worker_options
@click.option(
    "--exit-when-complete",
    is_flag=True,
    help="End when every channel of the tunnel is read to its end or to source.endTime.",
)
def run(path: Path, log_level: str, exit_when_complete: bool, termination_log: Path) -> None:
    """Consume a tunnel into a sink; the command of a worker's pod.

    SIGTERM and SIGINT drain: running writes finish, checkpoints are stored, channels are handed back. A second signal
    closes at once. With --exit-when-complete the command exits with 0 only when every channel is read, with 6 when its
    share is, and another client holds the rest. `ots-tunnel --help` lists the exit codes.
    """

    def begin(last_resort: LastResort) -> tuple[Place, Coroutine[Any, Any, Ending]]:
        stamp = _written_at(path)  # before it is read: what is written meanwhile is read again
        config = worker_config(path)
        place = Place.of_source(config.source)
        return place, consume(config, path, stamp, last_resort, exit_when_complete=exit_when_complete)

    run_and_leave(begin, log_level, termination_log)


def _written_at(path: Path) -> int:
    """Time of a file's last change in nanoseconds; 0 where it cannot be told."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


async def consume(
    config: WorkerConfig,
    path: Path,
    stamp: int = 0,
    last_resort: LastResort | None = None,
    *,
    exit_when_complete: bool = False,
) -> Ending:
    """Run one worker of a document, with its status server.

    Args:
        path: of the document, whose read mark may be renewed.
        stamp: see `RenewedMark`.
        last_resort: see `run_worker`.

    Raises:
        ConfigError, ServiceError, WrongTunnel, SinkRejected: the terminal error.
    """
    from ots_tunnel.allocator import keep_freed_memory
    from ots_tunnel.client.tunnel import TunnelClient
    from ots_tunnel.commands.preflight import check_tunnel
    from ots_tunnel.credentials import FileCredentials
    from ots_tunnel.sinks.choice import open_sink
    from ots_tunnel.worker.gaps.read_mark import RenewedMark
    from ots_tunnel.worker.settings import WorkerSettings
    from ots_tunnel.worker.status.metrics import WorkerMetrics
    from ots_tunnel.worker.worker import TunnelWorker

    keep_freed_memory()  # before the sink imports Arrow
    source = config.source
    credentials = FileCredentials(source.credentials.directory).checked("source.credentials.directory")
    settings = WorkerSettings.of(config, exit_when_complete=exit_when_complete)
    sink = open_sink(config)
    client = TunnelClient(source.endpoint, source.instance, credentials)
    metrics = WorkerMetrics(source.tunnel_name, config.sink.kind)
    renewed = RenewedMark(path, config, stamp)
    worker = TunnelWorker(
        client,
        sink,
        settings,
        metrics=metrics,
        preflight=lambda: check_tunnel(client, source),
        read_mark=lambda _: renewed(),
    )
    signals = await run_worker(
        worker, client.close, config.http, config.client.drain_seconds, last_resort or LastResort()
    )
    complete = worker.status.tunnel_done if exit_when_complete else None
    return ended(worker, signals, complete=complete)
