"""Where the records of a run go, and how many of them arrived there."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from tests.bench.sinks.receiver import Receiver
from tests.kafka.broker import Broker
from tests.kafka.topic import count_messages

#: Bytes that are read at a time.
PORTION = 1 << 20
#: Seconds until the reader of a pipe has read what is in it.
READING = 30.0


@dataclass(frozen=True, slots=True)
class Destination:
    """The place of one run.

    Args:
        to: the place for a worker, see `Job`.
        count: counts the records that arrived, once the worker has ended.
        stdout: file descriptor for the worker's standard output, None where no records go there.
    """

    to: str
    count: Callable[[], int]
    stdout: int | None = None


@dataclass
class Places:
    """Makes the destination of each run.

    Args:
        folder: for files.
        broker: None where no run goes to Kafka.
        receiver: None where no run goes to a web service.
    """

    folder: Path
    broker: Broker | None = None
    receiver: Receiver | None = None
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @contextmanager
    def destination(self, work: str) -> Iterator[Destination]:
        """A new place for a run of a work, which is removed in the end."""
        match work:
            case "lines" | "parquet" | "typed":
                count = lines_in if work == "lines" else rows_in
                with TemporaryDirectory(dir=self.folder) as name:
                    yield Destination(name, lambda: count(Path(name)))
            case "stdout":
                with _pipe() as destination:
                    yield destination
            case "kafka":
                assert self.broker is not None
                address, topic = self.broker.address(), self.broker.create_topic(f"changes-{next(self._numbers)}")
                yield Destination(f"{address}/{topic}", lambda: count_messages(address, topic))
                self.broker.delete_topic(topic)
            case "http":
                assert self.receiver is not None
                receiver, run = self.receiver, f"run-{next(self._numbers)}"
                yield Destination(receiver.url(run), lambda: receiver.events(run))
            case _:
                raise ValueError(f"{work!r} has no destination")


def lines_in(folder: Path) -> int:
    """The number of lines in the files of a folder."""
    total = 0
    for path in _published(folder):
        with path.open("rb") as file:
            while portion := file.read(PORTION):
                total += portion.count(b"\n")
    return total


def rows_in(folder: Path) -> int:
    """The number of rows in the Parquet files of a folder."""
    return sum(pq.read_metadata(path).num_rows for path in _published(folder))


def _published(folder: Path) -> Iterator[Path]:
    """The files that a reader would take; the names of others begin with a dot."""
    return (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


@contextmanager
def _pipe() -> Iterator[Destination]:
    """A pipe whose reader counts the lines."""
    reading, writing = os.pipe()
    lines = 0

    def read() -> None:
        nonlocal lines
        while portion := os.read(reading, PORTION):
            lines += portion.count(b"\n")

    reader = threading.Thread(target=read, name="lines", daemon=True)
    reader.start()
    is_open = True

    def close() -> None:
        nonlocal is_open
        if is_open:
            os.close(writing)  # the reader ends when the worker has ended, too
            is_open = False

    def count() -> int:
        close()
        reader.join(READING)
        if reader.is_alive():
            raise RuntimeError("standard output is still open: a process of the worker lives")
        return lines

    try:
        yield Destination("", count, writing)
    finally:
        close()
        reader.join(READING)
        os.close(reading)
