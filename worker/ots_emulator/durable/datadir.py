"""Opening a data directory: its lock, its database, the format of the database.

The lock file outlasts its processes. Once there is a database it holds a mark, so that a start without that database is
told from a first one: an emulator that has lost everything must not start as an empty one.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path
from typing import IO, Final

from ots_emulator.durable import DataError
from ots_emulator.durable.wal import damage_in
from ots_tunnel.folders import flush_folder, make_folder

#: 2 has the origin columns of streams, which readers of format 1 refuse as damage.
FORMAT: Final = 2
#: Marks the database as the emulator's: the letters "otse".
APPLICATION: Final = 0x6F747365
DATABASE_NAME: Final = "emulator.db"
LOCK_NAME: Final = "lock"
#: Content of the lock file once there is a database; any content is the mark.
_MARK: Final = f"{DATABASE_NAME} holds data\n".encode()
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
        lock = (directory / LOCK_NAME).open("a+b")
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


def open_database(path: Path, lock: IO[bytes], *, fsync: bool) -> sqlite3.Connection:
    """Open a database, or create it and mark that it is there.

    Args:
        lock: what `lock_directory` has returned.

    Raises:
        DataError: it belongs to another program, has a newer format, or has lost what was stored in it.
        sqlite3.Error: the file is not a database. OSError: a file cannot be read or written.
    """
    has_held_data = os.fstat(lock.fileno()).st_size > 0
    _check_files(path, has_held_data=has_held_data)
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        application, version = (
            db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        is_new = not application and not version and not db.execute("SELECT 1 FROM sqlite_master").fetchone()
        if is_new and has_held_data:
            raise _lost(path, "has no content")
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
        # Also in a directory of a release that left no mark.
        _mark(lock)
    except BaseException:
        db.close()
        raise
    return db


def _check_files(path: Path, *, has_held_data: bool) -> None:
    """Compare the files of a database with what is known to have been stored; SQLite takes any of them as good.

    Raises:
        DataError: the database is missing or empty, or the write-ahead log is damaged before a commit.
    """
    log = path.with_name(f"{path.name}-wal")
    written = log.read_bytes() if log.exists() else b""
    if has_held_data or written:
        if not path.exists():
            raise _lost(path, "is missing")
        if path.is_file() and not path.stat().st_size:
            raise _lost(path, "is empty")
    damaged = damage_in(written)
    if damaged is not None:
        raise DataError(
            f"{log.name} is damaged at byte {damaged}, and stored changes follow: bring the file back, or cut it to "
            f"{damaged} bytes (truncate -s {damaged}) to continue without them"
        )


def _lost(path: Path, what: str) -> DataError:
    return DataError(
        f"{path.name} {what}, although data was stored in it: bring the file back, or empty the directory to begin "
        "without data"
    )


def _mark(lock: IO[bytes]) -> None:
    if not os.fstat(lock.fileno()).st_size:
        lock.write(_MARK)
        lock.flush()


def set_fsync(db: sqlite3.Connection, *, fsync: bool) -> None:
    """Choose whether every commit waits for the disk."""
    # NORMAL waits for the disk only when the write-ahead log is merged, which keeps the database consistent.
    db.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'NORMAL'}")


def unusable(directory: Path, error: Exception) -> DataError:
    """Build the error with the reason in one line."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return DataError(f"data directory {directory}: {reason}")
