"""Opening a data directory: its lock, its database, the format of the database."""

from __future__ import annotations

import fcntl
import sqlite3
from pathlib import Path
from typing import IO, Final

from ots_emulator.durable import DataError
from ots_tunnel.folders import flush_folder, make_folder

#: 2 has the origin columns of streams, which readers of format 1 refuse as damage.
FORMAT: Final = 2
#: Marks the database as the emulator's: the letters "otse".
APPLICATION: Final = 0x6F747365
DATABASE_NAME: Final = "emulator.db"
LOCK_NAME: Final = "lock"
#: A rewritten row costs a page, so pages are small; appended rows cost little more with small pages.
_PAGE_BYTES: Final = 2048
#: Size at which the write-ahead log is merged into the database.
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


def lock_directory(directory: Path) -> IO[bytes]:
    """Create a directory if it is missing, and lock it for this process until the returned file is closed.

    Raises:
        DataError: it is locked by another process, or cannot be created.
    """
    try:
        make_folder(directory)
        lock = (directory / LOCK_NAME).open("ab")
    except FileExistsError as error:
        raise DataError(f"data directory {directory}: is a file, a directory is needed") from error
    except OSError as error:
        raise unusable(directory, error) from error
    try:
        # The kernel releases the lock when the process ends, also by a kill.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        text = "is in use by another process" if isinstance(error, BlockingIOError) else error.strerror
        raise DataError(f"data directory {directory}: {text}") from error
    return lock


def open_database(path: Path, *, fsync: bool) -> sqlite3.Connection:
    """Open a database, or create it.

    Raises:
        DataError: it belongs to another program, or has a newer format.
        sqlite3.Error: the file is not a database.
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
        set_fsync(db, fsync=fsync)
        if is_new:
            for statement in ("BEGIN", *_SCHEMA, "COMMIT"):
                db.execute(statement)
            flush_folder(path.parent)
        elif version < FORMAT:
            # Everything of an older format is read; what is written from now on has this one.
            db.execute(f"PRAGMA user_version = {FORMAT}")
    except BaseException:
        db.close()
        raise
    return db


def set_fsync(db: sqlite3.Connection, *, fsync: bool) -> None:
    """Choose whether every commit waits for the disk."""
    # NORMAL waits for the disk only when the write-ahead log is merged, which keeps the database consistent.
    db.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'NORMAL'}")


def unusable(directory: Path, error: Exception) -> DataError:
    """Build the error with the reason in one line."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return DataError(f"data directory {directory}: {reason}")
