"""Storage of a data directory: a SQLite database of numbers and bytes, which knows neither tables nor tunnels.

    document(number, kind, owner, body)      tables, partitions, tunnels, channels, clients as JSON
    image(place, row, versioned)             rows; place = table number << 36 | number within the table
    entry(place, time_us, record)            log entries; place = partition number << 36 | position

New rows are appended, whatever their keys are: a batch of random keys writes a few pages instead of one page per row.

One commit is one transaction in SQLite's write-ahead log. A killed process loses nothing that was committed, because
the pages are in the kernel by then. A power loss never breaks the database, but without `fsync` it may lose the last
commits.

Stored is everything that clients have seen in answers: rows, logs, tables, tunnels, channels with owner, version and
checkpoint, connected clients and the time of their last heartbeat. Not stored are open transactions (a crash aborts
them), fault rules, changed settings and a shifted clock. Instances that are not served stay unchanged.

Every call has its own commit, which costs about 15 us; grouping commits of several calls would cost more.

Numbers are never used twice, so rows and entries of something deleted can be removed later, in pieces.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from ots_emulator.durable import DataError
from ots_emulator.durable.datadir import DATABASE_NAME, lock_directory, open_database, set_fsync, unusable

_log = logging.getLogger(__name__)

#: 36 of 63 bits: 64 billion rows or entries in each of 128 million tables and partitions.
_POSITION_BITS: Final = 36
_POSITIONS: Final = 1 << _POSITION_BITS
#: Deleted rows or entries that one commit removes.
_SWEEP_STEP: Final = 500


@dataclass(slots=True)
class Batch:
    """The content of one commit."""

    documents: list[tuple[int, str, int, str]] = field(default_factory=list)
    """Number, kind, owner's number, body."""
    gone: list[tuple[int]] = field(default_factory=list)
    """Numbers of documents to delete."""
    rows: list[tuple[int, bytes, bool]] = field(default_factory=list)
    """Place, image, whether some column has several versions."""
    gone_rows: list[tuple[int]] = field(default_factory=list)
    """Places of rows to delete."""
    entries: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Place, commit time in us, record."""

    def __bool__(self) -> bool:
        return bool(self.documents or self.gone or self.rows or self.gone_rows or self.entries)


class Storage:
    """An open data directory.

    Args:
        directory: created if it is missing.
        fsync: whether every commit waits for the disk.

    Raises:
        DataError: the directory cannot be used.
    """

    def __init__(self, directory: Path, *, fsync: bool = False) -> None:
        self.directory = directory
        #: Why no commit is possible any more: a write has failed, or the directory has been closed.
        self.failure: str | None = None
        #: Whether changes are lost, because a write has failed.
        self.is_behind = False
        self._lock = lock_directory(directory)
        try:
            self._db = open_database(directory / DATABASE_NAME, self._lock, fsync=fsync)
            self._next_number = self._highest_number() + 1
        except (sqlite3.Error, OSError, DataError) as error:
            self._lock.close()
            raise unusable(directory, error) from error
        #: Table of the database, first and last place.
        self._unswept: deque[tuple[str, int, int]] = deque()

    def __repr__(self) -> str:
        return f"Storage({self.directory}, {self._next_number - 1} numbers)"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def set_fsync(self, fsync: bool) -> None:
        """Choose whether every commit waits for the disk."""
        set_fsync(self._db, fsync=fsync)

    def new_number(self) -> int:
        """Return an unused number."""
        self._next_number += 1
        return self._next_number - 1

    # Writing

    @property
    def is_swept(self) -> bool:
        """Whether all deleted rows and entries have been removed."""
        return not self._unswept

    def commit(self, batch: Batch) -> None:
        """Write a batch completely or not at all, and remove some deleted rows.

        Raises:
            DataError: it could not be written; all further commits are refused.
        """
        if self.failure is not None:
            raise DataError(self.failure)
        db = self._db
        try:
            db.execute("BEGIN")
            if batch.documents:
                db.executemany("INSERT OR REPLACE INTO document VALUES (?, ?, ?, ?)", batch.documents)
            if batch.gone:
                db.executemany("DELETE FROM document WHERE number = ?", batch.gone)
            if batch.rows:
                db.executemany("INSERT OR REPLACE INTO image VALUES (?, ?, ?)", batch.rows)
            if batch.gone_rows:
                db.executemany("DELETE FROM image WHERE place = ?", batch.gone_rows)
            if batch.entries:
                db.executemany("INSERT INTO entry VALUES (?, ?, ?)", batch.entries)
            if not self.is_swept:
                self._sweep()
            db.execute("COMMIT")
        except sqlite3.Error as error:
            self.fail(f"data directory {self.directory}: cannot be written: {error}")
            raise DataError(str(self.failure)) from error

    def fail(self, reason: str) -> None:
        """Refuse all further commits, because the state in memory is ahead of the database."""
        self.failure = reason
        self.is_behind = True
        _log.critical("no more calls are taken: %s", reason, extra={"action": "data_failed"})

    def forget_rows(self, table: int) -> None:
        """Remove the rows of a table with the next commits."""
        self._unswept.append(("image", place_of(table, 0), place_of(table, _POSITIONS - 1)))

    def forget_entries(self, partition: int, first: int = 0, last: int = _POSITIONS - 1) -> None:
        """Remove the entries of a partition between two positions (inclusive) with the next commits."""
        self._unswept.append(("entry", place_of(partition, first), place_of(partition, last)))

    def _sweep(self) -> None:
        table, first, last = self._unswept.popleft()
        places = f"FROM {table} WHERE place BETWEEN ? AND ?"
        query = f"SELECT place {places} ORDER BY place LIMIT 1 OFFSET {_SWEEP_STEP}"
        rest = self._db.execute(query, (first, last)).fetchone()
        if rest is not None:
            self._unswept.appendleft((table, rest[0], last))
            last = rest[0] - 1
        self._db.execute(f"DELETE {places}", (first, last))

    # Reading

    def documents(self) -> Iterator[tuple[int, str, int, str]]:
        """Yield number, kind, owner and body of all documents in the order of their creation."""
        yield from self._db.execute("SELECT number, kind, owner, body FROM document ORDER BY number")

    def rows(self, table: int) -> Generator[tuple[int, bytes, int]]:
        """Yield place, image and whether it has several versions, of all rows of a table."""
        query = "SELECT place, row, versioned FROM image WHERE place BETWEEN ? AND ? ORDER BY place"
        yield from self._db.execute(query, (place_of(table, 0), place_of(table, _POSITIONS - 1)))

    def entries(self, partition: int, base: int) -> Generator[tuple[int, int, bytes]]:
        """Yield position, commit time and record of the entries of a partition from a position on."""
        query = "SELECT place - ?, time_us, record FROM entry WHERE place BETWEEN ? AND ? ORDER BY place"
        first, last = place_of(partition, base), place_of(partition, _POSITIONS - 1)
        yield from self._db.execute(query, (place_of(partition, 0), first, last))

    def tables_with_rows(self) -> Iterator[int]:
        """Yield the numbers of all tables that have rows, also of deleted ones."""
        return (number for number, _ in self._holders("image"))

    def partitions_with_entries(self) -> Iterator[tuple[int, int]]:
        """Yield number and first stored position of all partitions that have entries, also of removed ones."""
        return self._holders("entry")

    def _holders(self, table: str) -> Iterator[tuple[int, int]]:
        start = 0
        while True:
            found = self._db.execute(f"SELECT min(place) FROM {table} WHERE place >= ?", (start,)).fetchone()[0]
            if found is None:
                return
            number = found >> _POSITION_BITS
            yield number, found - place_of(number, 0)
            start = place_of(number + 1, 0)

    def _highest_number(self) -> int:
        maxima = (f"(SELECT max(place) >> {_POSITION_BITS} FROM {table})" for table in ("image", "entry"))
        query = f"SELECT (SELECT max(number) FROM document), {', '.join(maxima)}"
        return max(number or 0 for number in self._db.execute(query).fetchone())

    # Ending

    def close(self) -> None:
        """Merge the write-ahead log into the database and release the directory."""
        if self.failure is None:
            self.failure = f"{self.directory}: has been closed"
        try:
            self._db.close()
        finally:
            self._lock.close()


def place_of(partition: int, position: int) -> int:
    """Return the place of a row or entry, which orders all of them."""
    return partition << _POSITION_BITS | position
