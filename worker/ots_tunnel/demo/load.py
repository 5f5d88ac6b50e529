"""Loading the flights into a table.

Rows are written through the vendor's SDK. Its encoder is pure Python and needs a core for about ten thousand rows a
second, so several processes load in parallel.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait

from ots_tunnel.credentials import static_credentials
from ots_tunnel.demo.flights import FLIGHTS, ROWS_PER_REQUEST, find_flights, read_flights
from ots_tunnel.errors import SinkError, TunnelError
from ots_tunnel.model import Credentials
from ots_tunnel.tables import RowWrite, TableAdmin

#: Seconds between two attempts to write failed rows.
RETRY_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class Target:
    """The table to load into; pickled to the loader processes."""

    endpoint: str
    instance: str
    credentials: Credentials
    table: str

    def admin(self) -> TableAdmin:
        """A new connection to the table's instance."""
        return TableAdmin(self.endpoint, self.instance, static_credentials(self.credentials))


def load_flights(
    target: Target,
    *,
    version_ms: int,
    progress: Callable[[int], None] | None = None,
    processes: int = 2,
    rows: int = FLIGHTS,
) -> int:
    """Put the flights into an existing table; return the number of rows written.

    Args:
        target: the table.
        version_ms: version of every cell, milliseconds since 1970; must be near the service's time.
        progress: called with the number of stored rows.
        processes: number of loader processes.
        rows: number of rows to load, from the start of the file.

    Raises:
        SinkError: a loader failed; the text has its error.
    """
    context = get_context("spawn")
    loaders = []
    receivers: list[Connection] = []
    try:
        for share in range(processes):
            receiver, sender = context.Pipe(duplex=False)
            arguments = (target, version_ms, share, processes, rows, sender)
            loader = context.Process(target=_load_share, args=arguments, daemon=True)
            loader.start()
            # Only the loader holds the sending end now, so the pipe ends when the loader dies.
            sender.close()
            loaders.append(loader)
            receivers.append(receiver)
        return _collect(receivers, progress)
    finally:
        for loader in loaders:
            loader.terminate()
            loader.join()
            loader.close()
        for receiver in receivers:
            receiver.close()


def _collect(receivers: Sequence[Connection], progress: Callable[[int], None] | None) -> int:
    """Sum up the rows that the loaders report, until each has reported its end.

    Raises:
        SinkError: a loader reported an error or ended without a report.
    """
    stored = 0
    running = set(receivers)
    while running:
        for receiver in wait(list(running)):
            assert isinstance(receiver, Connection)
            try:
                message = receiver.recv()
            except EOFError:
                raise SinkError("a loader of the demo's data ended unexpectedly") from None
            match message:
                case int():
                    stored += message
                    if progress is not None:
                        progress(stored)
                case str():
                    raise SinkError(message)
                case _:
                    running.remove(receiver)
    return stored


def _load_share(target: Target, version_ms: int, share: int, shares: int, rows: int, sender: Connection) -> None:
    """Main function of a loader: send the rows of each request, None at the end, a text on failure."""
    # Ctrl-C in a terminal reaches the whole process group; the parent terminates its loaders.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    admin = target.admin()
    source = read_flights(find_flights(), version_ms, rows=rows, share=share, shares=shares)
    try:
        while request := tuple(islice(source, ROWS_PER_REQUEST)):
            write_all(admin, target.table, request)
            sender.send(len(request))
        sender.send(None)
    except TunnelError as error:
        sender.send(f"loading {target.table!r} failed: {error}")
    finally:
        admin.close()
        sender.close()


def write_all(admin: TableAdmin, table: str, rows: Sequence[RowWrite], *, tries: int = 10) -> None:
    """Write at most 200 rows with different keys; retry rows with temporary errors every second.

    Raises:
        ServiceError, TransportError: rows were rejected, or still failed at the last attempt.
    """
    left = list(rows)
    for attempt in range(1, tries + 1):
        failures: Sequence[TunnelError | None]
        try:
            failures = admin.write(table, left)
        except TunnelError as error:
            failures = [error] * len(left)
        final = next((error for error in failures if error is not None and not error.retryable), None)
        if final is not None:
            raise final
        last = next((error for error in failures if error is not None), None)
        if last is None:
            return
        if attempt == tries:
            raise last
        left = [row for row, error in zip(left, failures, strict=True) if error is not None]
        time.sleep(RETRY_PAUSE)
