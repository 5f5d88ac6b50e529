"""`ots-tunnel stream run`: follow a table into a sink, beside all workers with the same table of leases."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ots_tunnel.commands.worker_process.checked_document import stream_document
from ots_tunnel.commands.worker_process.ending import Ending
from ots_tunnel.commands.worker_process.last_resort import LastResort
from ots_tunnel.commands.worker_process.options import worker_options
from ots_tunnel.commands.worker_process.process import run_and_leave
from ots_tunnel.commands.worker_process.serving import ended, run_worker
from ots_tunnel.console.examples import examples
from ots_tunnel.console.explanations import Place

if TYPE_CHECKING:
    from ots_tunnel.config import StreamDocument, StreamSourceConfig


@click.command(epilog=examples("ots-tunnel stream run --config stream.yaml"))
@worker_options
def run(path: Path, log_level: str, termination_log: Path) -> None:
    """Follow a table into a sink, without a tunnel.

    Start as many workers as you like: they share the shards through the table of leases, also with workers of the
    vendor's Java library. SIGTERM and SIGINT drain: running writes finish, checkpoints are stored, leases are handed
    over. A second signal closes at once. `ots-tunnel --help` lists the exit codes.
    """

    def begin(last_resort: LastResort) -> tuple[Place, Coroutine[Any, Any, Ending]]:
        document = stream_document(path)
        return place_of(document.source), follow(document, last_resort)

    run_and_leave(begin, log_level, termination_log)


async def follow(document: StreamDocument, last_resort: LastResort) -> Ending:
    """Run one worker of a document, with its status server.

    Raises:
        ConfigError, ServiceError, NoStream, PossibleGap, SinkRejected: the terminal error.
    """
    from ots_tunnel.allocator import keep_freed_memory
    from ots_tunnel.stream.sinking.opening import open_worker

    keep_freed_memory()  # before the sink imports Arrow
    worker, client = open_worker(document)
    signals = await run_worker(worker, client.close, document.http, document.client.drain_seconds, last_resort)
    return ended(worker, signals)


def place_of(source: StreamSourceConfig) -> Place:
    """The names that messages need."""
    return Place(source.endpoint, source.instance, str(source.credentials.directory), source.table, settings="source.")
