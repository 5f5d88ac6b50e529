"""The demo's writer: sends a sequence of changes at a steady rate through the vendor's SDK until it is stopped.

`python -m ots_tunnel.demo.writer --endpoint URL --instance NAME --table NAME` runs it as a separate process: it reads
the line `accessKeyId:accessKeySecret` from standard input, stops on SIGTERM or SIGINT, and prints the number of stored
changes by kind as one JSON object.

One thread sends, so the changes of a key stay in order. A request never holds a key twice, and a change with a
temporary error is retried before later changes of its key are sent.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import click

from ots_tunnel.credentials import static_credentials
from ots_tunnel.demo.changes import ChangeKind, DemoChange, changes
from ots_tunnel.demo.flights import FLIGHTS, find_flights, read_keys
from ots_tunnel.demo.load import write_all
from ots_tunnel.errors import ConfigError, ObjectNotExist, TunnelError
from ots_tunnel.model import Credentials, PrimaryKey
from ots_tunnel.sinks.grouping import Grouping, Limits
from ots_tunnel.tables import TableAdmin

#: Seconds between two bursts; their size follows from the rate.
TICK = 0.1

#: Most changes per burst, twice the service's request maximum: after a pause the writer does not catch up at once.
MOST_PER_TICK = 400

#: Attempts per request, a second apart: two minutes, longer than a restart of the service.
TRIES = 120


@dataclass(frozen=True, slots=True)
class _Sendable:
    """A change in the form that `Grouping` takes; requests are limited by rows here, so every size is 1."""

    change: DemoChange
    size: int = 1

    @property
    def key(self) -> PrimaryKey:
        return self.change.write.primary_key


class ChangeWriter:
    """Changes a table from its own thread.

    Args:
        admin: the table's instance; closed when the writer stops.
        table: name of the table.
        changes: endless sequence of changes, see `changes.changes`.
        rate: changes per second.
    """

    def __init__(self, admin: TableAdmin, table: str, changes: Iterator[DemoChange], *, rate: float = 500.0) -> None:
        self._admin = admin
        self._table = table
        self._changes = changes
        self._rate = rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-writer", daemon=True)
        self._counts: Counter[ChangeKind] = Counter()
        self._error: TunnelError | None = None

    def __repr__(self) -> str:
        return f"ChangeWriter({self._table}, {self.total} changes)"

    @property
    def counts(self) -> Mapping[ChangeKind, int]:
        """Changes stored so far, by kind."""
        return {kind: self._counts[kind] for kind in ChangeKind}

    @property
    def total(self) -> int:
        """Changes stored so far."""
        return sum(self.counts.values())

    @property
    def running(self) -> bool:
        """Whether the writer's thread is running."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start to write."""
        self._thread.start()

    def stop(self, timeout: float = 30.0) -> Mapping[ChangeKind, int]:
        """Stop after the current burst; return the counts.

        Args:
            timeout: seconds to wait for the thread.

        Raises:
            ServiceError, TransportError: the error that ended the writer before this call.
            TimeoutError: the thread did not end in time.
        """
        self._stop.set()
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the demo's writer did not stop within {timeout} s")
        if self._error is not None:
            raise self._error
        return self.counts

    def _run(self) -> None:
        try:
            self._write_until_stopped()
        except TunnelError as error:
            self._error = error
        finally:
            self._admin.close()

    def _write_until_stopped(self) -> None:
        owed = 0.0
        last = time.monotonic()
        while not self._stop.wait(TICK):
            now = time.monotonic()
            owed = min(owed + (now - last) * self._rate, MOST_PER_TICK)
            last = now
            burst = list(islice(self._changes, int(owed)))
            owed -= len(burst)
            self._send(burst)

    def _send(self, burst: list[DemoChange]) -> None:
        grouping: Grouping[_Sendable] = Grouping(Limits())
        for change in burst:
            grouping.add(_Sendable(change))
        while taken := grouping.take():
            write_all(self._admin, self._table, [item.change.write for item in taken], tries=TRIES)
            grouping.settle(taken)
            self._counts.update(item.change.kind for item in taken)


def flight_changes(admin: TableAdmin, table: str, *, seed: int, rows: int = FLIGHTS) -> Iterator[DemoChange]:
    """The changes for a table that `load.load_flights` loaded and no writer has changed since.

    Args:
        admin: the table's instance.
        table: name of the table.
        seed: selects the sequence.
        rows: number of loaded rows.

    Raises:
        ObjectNotExist: the table does not exist.
    """
    schema = admin.describe(table)
    if schema is None:
        raise ObjectNotExist("OTSObjectNotExist", f"table {table!r} does not exist", http_status=404)
    base = admin.first_version(table, schema)
    keys = list(islice(read_keys(find_flights()), rows))
    return changes(seed, keys, base_version_ms=base or int(time.time() * 1000), max_versions=schema.max_versions)


@click.command()
@click.option("--endpoint", required=True, help="Instance endpoint, such as http://127.0.0.1:8800.")
@click.option("--instance", required=True, help="Instance name.")
@click.option("--table", required=True, help="Table with the loaded flights.")
@click.option("--rate", default=500.0, show_default=True, help="Changes per second.")
@click.option("--seed", default=1, show_default=True, help="Selects the sequence of changes.")
@click.option("--rows", default=FLIGHTS, show_default=True, help="Number of loaded rows.")
def main(endpoint: str, instance: str, table: str, rate: float, seed: int, rows: int) -> None:
    """Change a table until SIGTERM or SIGINT; credentials are read from standard input."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        admin = TableAdmin(endpoint, instance, static_credentials(_read_credentials()))
        writer = ChangeWriter(admin, table, flight_changes(admin, table, seed=seed, rows=rows), rate=rate)
        writer.start()
        while writer.running and not stop.wait(TICK):
            pass
        counts = writer.stop()
    except TunnelError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    click.echo(json.dumps({kind.value: count for kind, count in counts.items()}))


def _read_credentials() -> Credentials:
    key, found, secret = sys.stdin.readline().strip().partition(":")
    if not (key and found and secret):
        raise ConfigError("standard input: one line accessKeyId:accessKeySecret is needed")
    return Credentials(key, secret)


if __name__ == "__main__":
    main()
