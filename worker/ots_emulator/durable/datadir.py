"""Taking and opening a data directory: its lock, its database, the format of the database."""

from __future__ import annotations

import fcntl
import sqlite3
from pathlib import Path
from typing import IO, Final

FORMAT: Final = 1
#: Marks the database as the emulator's: the letters "otse".
APPLICATION: Final = 0x6F747365
DATABASE_NAME: Final = "emulator.db"
LOCK_NAME: Final = "lock"
#: A row that is written again costs a page, so pages are small; rows at the end cost little more for it.
_PAGE_BYTES: Final = 2048
#: The write-ahead log is brought into the database when it has grown to this size.
_LOG_BYTES: Final = 32 << 20
_SCHEMA: Final = (
    "CREATE TABLE document(number INTEGER PRIMARY KEY, kind TEXT NOT NULL, owner INTEGER NOT NULL, body TEXT NOT NULL)",
    "CREATE TABLE image(place INTEGER PRIMARY KEY, row BLOB NOT NULL, versioned INTEGER NOT NULL)",
    "CREATE TABLE entry(place INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, record BLOB NOT NULL)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
)
_PRAGMAS: Final = (
    f"page_size = {_PAGE_BYTES}",
    "locking_mode = EXCLUSIVE",
    "journal_mode = WAL",
    "cache_size = -65536",
    f"wal_autocheckpoint = {_LOG_BYTES // _PAGE_BYTES}",
)


class DataError(Exception):
    """The data directory cannot be used; the text is one line that says why."""


def lock_directory(directory: Path) -> IO[bytes]:
    """Make a directory if it is missing, and take it for this process until the returned file is closed.

    Raises:
        DataError: it is taken, or cannot be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / LOCK_NAME).open("ab")
    except OSError as error:
        raise unusable(directory, error) from error
    try:
        # Ends with the process, however it ends.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        text = "is in use by another process" if isinstance(error, BlockingIOError) else error.strerror
        raise DataError(f"data directory {directory}: {text}") from error
    return lock


def open_database(path: Path, *, fsync: bool) -> sqlite3.Connection:
    """Open a database, or make it.

    Raises:
        DataError: it is some other program's, or of a newer format.
        sqlite3.Error: it is none.
    """
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
        for pragma in _PRAGMAS:
            db.execute(f"PRAGMA {pragma}").fetchone()
        # Without: the disk is waited for when the write-ahead log is brought in, which keeps the database whole.
        db.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'NORMAL'}")
        if is_new:
            for statement in ("BEGIN", *_SCHEMA, "COMMIT"):
                db.execute(statement)
    except BaseException:
        db.close()
        raise
    return db


def unusable(directory: Path, error: Exception) -> DataError:
    """Say in one line why a directory cannot be used."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return DataError(f"data directory {directory}: {reason}")
