"""Interface of a place for files; a file appears whole or not at all."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Protocol

from ots_tunnel.errors import SinkError, SinkRejected

#: What no repetition mends: somebody has to change the volume or its rights.
_FINAL = frozenset(
    (errno.EACCES, errno.EEXIST, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
)


class FileSpoiled(SinkError):
    """A filled file is lost or of unknown content: its records have to be read again."""


class FileStore(Protocol):
    """A place for files. Folders are relative, names have no slash.

    Every call raises SinkRejected for what no repetition mends, SinkError for everything else.
    """

    async def check(self) -> None:
        """See whether files can be stored here."""
        ...

    async def spool(self, folder: str) -> Path:
        """A path where a new file of the folder may be filled."""
        ...

    async def publish(self, spooled: Path, folder: str, name: str, before: Callable[[], None]) -> None:
        """Let a filled file appear, and remove it from where it was filled.

        Args:
            before: called right before it appears, on any thread; what it raises is passed on.

        Raises:
            FileSpoiled: it cannot appear any more.
        """
        ...

    async def names(self, folder: str) -> list[str]:
        """Names of the published files; empty for a folder that is not there."""
        ...

    async def read(self, folder: str, name: str) -> IO[bytes]:
        """A published file for blocking, seekable reads."""
        ...

    async def delete(self, folder: str, names: Sequence[str]) -> None:
        """Remove published files; one that is not there is removed already."""
        ...

    async def tidy(self, folder: str) -> None:
        """Remove what a killed worker was filling in this folder."""
        ...


def disk_error(error: OSError) -> SinkError:
    """What an error of the file system means for records: refused for good, or worth another try."""
    message = f"{error.filename or 'file'}: {error.strerror or error}"
    if error.errno in _FINAL:
        return SinkRejected(type(error).__name__, message)
    return SinkError(message)
