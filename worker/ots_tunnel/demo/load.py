"""Loading the demo's data into a table.

Rows are written through the vendor's SDK, whose encoder needs a core for some ten thousand rows a second, hence
several processes.
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

#: Seconds between two tries of rows that failed.
RETRY_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class Target:
    """A table to load into; handed to other processes."""

    endpoint: str
    instance: str
    credentials: Credentials
    table: str

    def admin(self) -> TableAdmin:
        """A connection of its own."""
        return TableAdmin(self.endpoint, self.instance, static_credentials(self.credentials))


def load_flights(
    target: Target,
    *,
    version_ms: int,
    progress: Callable[[int], None] | None = None,
    processes: int = 2,
    rows: int = FLIGHTS,
) -> int:
    """Put the flights into a table that exists; returns the number of rows written.

    Args:
        target: the table.
        version_ms: version of every cell, milliseconds since 1970; must be near the service's time.
        progress: told how many rows are stored.
        processes: loaders running at once.
        rows: load only the file's first so many.

    Raises:
        SinkError: a loader failed; its text says why.
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
            # Only the loader holds the sending end now, so its death is seen as the end of the pipe.
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
    """Add up what the loaders report, until each has said that it is done.

    Raises:
        SinkError: a loader reported an error or ended without a word.
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
    """What a loader process does: reports the rows of every request, None at the end, a text on failure."""
    # The terminal's Ctrl-C reaches the whole group; the parent ends its loaders.
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
    """Write at most 200 rows of different keys; what fails for the moment is tried again, a second apart.

    Raises:
        ServiceError, TransportError: rows are refused, or still fail at the last try.
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
