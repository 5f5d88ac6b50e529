"""Interface of a place for files; a file appears whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Protocol

from ots_tunnel.errors import SinkError, SinkRejected

#: Blocking calls of one store, and of the files that are filled for it, at the same time; own choice. A volume that
#: hangs takes these threads and no others.
THREADS = 8

#: Errors that a repetition does not repair: an administrator has to change the volume or its rights.
_FINAL = frozenset(
    (errno.EACCES, errno.EEXIST, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
)


class FileSpoiled(SinkError):
    """A filled file is lost, or its content is unknown: its records have to be read again."""


class FileStore(Protocol):
    """A place for files. Folders are relative, names have no slash.

    Every call raises SinkRejected for errors that a repetition does not repair, SinkError for all others.
    """

    async def check(self) -> None:
        """Check that files can be stored here."""
        ...

    async def spool(self, folder: str) -> Path:
        """A path where a new file of the folder may be filled."""
        ...

    async def publish(self, spooled: Path, folder: str, name: str, before: Callable[[], None]) -> None:
        """Make a filled file appear under its name, and remove the spooled one.

        Args:
            before: called right before the file appears, on any thread; its exceptions are passed on.

        Raises:
            FileSpoiled: the spooled file cannot be published any more.
        """
        ...

    async def names(self, folder: str, after: str = "") -> list[str]:
        """Names of the published files; empty for a folder that does not exist.

        Args:
            after: only names that sort behind it: a folder may hold a file for every minute of years.
        """
        ...

    async def read(self, folder: str, name: str) -> IO[bytes]:
        """A published file for blocking, seekable reads."""
        ...

    async def delete(self, folder: str, names: Sequence[str], before: Callable[[], None] = lambda: None) -> None:
        """Remove published files; a missing one counts as removed.

        Args:
            before: called right before each is removed, on any thread; its exceptions are passed on.
        """
        ...

    async def tidy(self, folder: str) -> None:
        """Remove the files that a killed worker was filling for this folder."""
        ...


def flush_file(path: Path) -> None:
    """Wait until a filled file is on the disk.

    Raises:
        FileSpoiled: the disk failed.
    """
    try:
        with path.open("rb") as file:
            os.fsync(file.fileno())
    except OSError as error:
        # The kernel drops pages that it could not write: a second fsync would succeed and prove nothing.
        raise FileSpoiled(f"{path}: {error.strerror or error}") from error


def disk_error(error: OSError) -> SinkError:
    """The error to raise for one of the file system: SinkRejected where a repetition does not repair it."""
    message = f"{error.filename or 'file'}: {error.strerror or error}"
    if error.errno in _FINAL:
        return SinkRejected(type(error).__name__, message)
    return SinkError(message)
