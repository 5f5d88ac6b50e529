"""The data directory: one SQLite database that knows numbers and bytes, and nothing of tables or tunnels.

    document(number, kind, owner, body)      tables, partitions, tunnels, channels, clients as JSON
    image(holder, key, row, versioned)       rows, by the number of their table
    entry(place, time_us, record)            log entries; place = partition number << 36 | position

One commit is one transaction in SQLite's write-ahead log. The death of the process costs nothing that was committed:
the pages are the kernel's by then. A power loss never breaks the database, but without `fsync` it may cost the last
commits.

Numbers are never used twice, so what belonged to something deleted can be swept away later, in pieces.
"""

from __future__ import annotations

import fcntl
import logging
import sqlite3
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Self

_log = logging.getLogger(__name__)

FORMAT: Final = 1
#: Marks the database as the emulator's: the letters "otse".
APPLICATION: Final = 0x6F747365
DATABASE_NAME: Final = "emulator.db"
LOCK_NAME: Final = "lock"
_POSITION_BITS: Final = 36
#: How much of what was deleted one commit sweeps away.
_SWEEP_STEP: Final = 500
_SCHEMA: Final = (
    "CREATE TABLE document(number INTEGER PRIMARY KEY, kind TEXT NOT NULL, owner INTEGER NOT NULL, body TEXT NOT NULL)",
    "CREATE TABLE image(holder INTEGER, key BLOB, row BLOB NOT NULL, versioned INTEGER NOT NULL,"
    " PRIMARY KEY(holder, key)) WITHOUT ROWID",
    "CREATE TABLE entry(place INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, record BLOB NOT NULL)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
)


class DataError(Exception):
    """The data directory cannot be used; the text is one line that says why."""


@dataclass(slots=True)
class Batch:
    """What one commit writes."""

    documents: list[tuple[int, str, int, str]] = field(default_factory=list)
    """Number, kind, owner's number, body."""
    gone: list[tuple[int]] = field(default_factory=list)
    """Numbers of documents to delete."""
    rows: list[tuple[int, bytes, bytes, bool]] = field(default_factory=list)
    """Table, key, image, whether some column has several versions."""
    gone_rows: list[tuple[int, bytes]] = field(default_factory=list)
    entries: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Place, commit time in us, record."""

    def __bool__(self) -> bool:
        return bool(self.documents or self.gone or self.rows or self.gone_rows or self.entries)


class Storage:
    """An open data directory.

    Args:
        directory: made if it is missing.
        fsync: whether every commit waits for the disk.

    Raises:
        DataError: it cannot be used.
    """

    def __init__(self, directory: Path, *, fsync: bool = False) -> None:
        self.directory = directory
        #: Why nothing can be committed any more.
        self.failure: str | None = None
        self._lock = _locked(directory)
        try:
            self._db = _opened(directory / DATABASE_NAME, fsync=fsync)
            self._next_number = self._highest_number() + 1
        except (sqlite3.Error, DataError) as error:
            self._lock.close()
            raise _data_error(directory, error) from error
        self._unswept_tables: deque[int] = deque()
        self._unswept_entries: deque[tuple[int, int]] = deque()

    def __repr__(self) -> str:
        return f"Storage({self.directory}, {self._next_number - 1} numbers)"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def new_number(self) -> int:
        """Return a number that was never used."""
        self._next_number += 1
        return self._next_number - 1

    # Writing

    @property
    def is_swept(self) -> bool:
        """Whether nothing deleted is left."""
        return not (self._unswept_tables or self._unswept_entries)

    def commit(self, batch: Batch) -> None:
        """Write a batch whole or not at all, and sweep a piece of what was deleted.

        Raises:
            DataError: it could not be written; from now on nothing can.
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
                db.executemany("INSERT OR REPLACE INTO image VALUES (?, ?, ?, ?)", batch.rows)
            if batch.gone_rows:
                db.executemany("DELETE FROM image WHERE holder = ? AND key = ?", batch.gone_rows)
            if batch.entries:
                db.executemany("INSERT INTO entry VALUES (?, ?, ?)", batch.entries)
            if not self.is_swept:
                self._sweep()
            db.execute("COMMIT")
        except sqlite3.Error as error:
            self.fail(f"{self.directory}: cannot be written: {error}")
            raise DataError(str(self.failure)) from error

    def fail(self, reason: str) -> None:
        """Take no more commits: what is in memory is ahead of what is kept."""
        self.failure = reason
        _log.critical("no more calls are taken: %s", reason, extra={"action": "data_failed"})

    def forget_table(self, table: int) -> None:
        """Sweep the rows of a table away with the next commits."""
        self._unswept_tables.append(table)

    def forget_entries(self, partition: int, first: int = 0, last: int = (1 << _POSITION_BITS) - 1) -> None:
        """Sweep the entries of a partition from one position to another (inclusive) away with the next commits."""
        self._unswept_entries.append((place_of(partition, first), place_of(partition, last)))

    def _sweep(self) -> None:
        if self._unswept_tables:
            table = self._unswept_tables[0]
            query = "SELECT key FROM image WHERE holder = ? ORDER BY key LIMIT 1 OFFSET ?"
            end = self._db.execute(query, (table, _SWEEP_STEP)).fetchone()
            if end is None:
                self._db.execute("DELETE FROM image WHERE holder = ?", (table,))
                self._unswept_tables.popleft()
            else:
                self._db.execute("DELETE FROM image WHERE holder = ? AND key < ?", (table, end[0]))
        elif self._unswept_entries:
            first, last = self._unswept_entries[0]
            query = "SELECT place FROM entry WHERE place BETWEEN ? AND ? ORDER BY place LIMIT 1 OFFSET ?"
            end = self._db.execute(query, (first, last, _SWEEP_STEP)).fetchone()
            if end is None:
                self._db.execute("DELETE FROM entry WHERE place BETWEEN ? AND ?", (first, last))
                self._unswept_entries.popleft()
            else:
                self._db.execute("DELETE FROM entry WHERE place BETWEEN ? AND ?", (first, end[0] - 1))
                self._unswept_entries[0] = (end[0], last)

    # Reading

    def documents(self) -> Iterator[tuple[int, str, int, str]]:
        """Yield number, kind, owner and body of all documents in the order they came to be."""
        yield from self._db.execute("SELECT number, kind, owner, body FROM document ORDER BY number")

    def rows(self, table: int) -> Iterator[tuple[bytes, bytes, int]]:
        """Yield key, image and whether it has several versions, of all rows of a table."""
        yield from self._db.execute("SELECT key, row, versioned FROM image WHERE holder = ? ORDER BY key", (table,))

    def entries(self, partition: int, base: int) -> Iterator[tuple[int, bytes]]:
        """Yield commit time and record of the entries of a partition from a position on."""
        query = "SELECT time_us, record FROM entry WHERE place BETWEEN ? AND ? ORDER BY place"
        yield from self._db.execute(query, (place_of(partition, base), place_of(partition + 1, 0) - 1))

    def holders(self) -> Iterator[int]:
        """Yield the numbers of all tables that have rows, also of deleted ones."""
        found = self._db.execute("SELECT min(holder) FROM image").fetchone()[0]
        while found is not None:
            yield found
            found = self._db.execute("SELECT min(holder) FROM image WHERE holder > ?", (found,)).fetchone()[0]

    def logged_partitions(self) -> Iterator[tuple[int, int]]:
        """Yield the number and the first stored position of all partitions that have entries, also of removed ones."""
        found = self._db.execute("SELECT min(place) FROM entry").fetchone()[0]
        while found is not None:
            partition = found >> _POSITION_BITS
            yield partition, found - place_of(partition, 0)
            query = "SELECT min(place) FROM entry WHERE place >= ?"
            found = self._db.execute(query, (place_of(partition + 1, 0),)).fetchone()[0]

    def _highest_number(self) -> int:
        query = (
            "SELECT (SELECT max(number) FROM document), (SELECT max(holder) FROM image), (SELECT max(place) FROM entry)"
        )
        document, holder, place = self._db.execute(query).fetchone()
        return max(document or 0, holder or 0, (place or 0) >> _POSITION_BITS)

    # Ending

    def close(self) -> None:
        """Write the database whole, without a write-ahead log beside it, and let others use the directory."""
        if self.failure is None:
            self.failure = f"{self.directory}: has been closed"
        try:
            self._db.close()
        finally:
            self._lock.close()


def place_of(partition: int, position: int) -> int:
    """Return where an entry is in the order of all entries."""
    return partition << _POSITION_BITS | position


def _locked(directory: Path) -> IO[bytes]:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / LOCK_NAME).open("ab")
    except OSError as error:
        raise _data_error(directory, error) from error
    try:
        # Ends with the process, however it ends.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        text = "is in use by another process" if isinstance(error, BlockingIOError) else error.strerror
        raise DataError(f"data directory {directory}: {text}") from error
    return lock


def _opened(path: Path, *, fsync: bool) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        application, version = (
            db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        is_new = not application and not version and not db.execute("SELECT 1 FROM sqlite_master").fetchone()
        if not is_new and application != APPLICATION:
            raise DataError(f"{path.name} is a database of some other program")
        if version > FORMAT:
            raise DataError(f"is of format {version}, this version reads formats up to {FORMAT}")
        for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "cache_size = -65536"):
            db.execute(f"PRAGMA {pragma}").fetchone()
        db.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'NORMAL'}")
        if is_new:
            for statement in ("BEGIN", *_SCHEMA, "COMMIT"):
                db.execute(statement)
    except BaseException:
        db.close()
        raise
    return db


def _data_error(directory: Path, error: Exception) -> DataError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return DataError(f"data directory {directory}: {reason}")
