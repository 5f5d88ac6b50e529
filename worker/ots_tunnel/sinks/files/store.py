"""Where files are published: a folder or a bucket. A file appears whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Protocol
from urllib.parse import unquote, urlsplit

from ots_tunnel.config import FileStoreConfig
from ots_tunnel.errors import SinkError


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


def open_store(
    config: FileStoreConfig, *, path: str, deadline: float, spool_directory: Path | None = None
) -> FileStore:
    """The place that a document names.

    Args:
        path: of the configuration in the document, for messages.
        deadline: seconds within which a file has to appear once that was begun (docs/architecture.md rule 4).
        spool_directory: where files for a bucket are filled; None means the system's temporary folder.

    Raises:
        ConfigError: files of credentials are missing.
    """
    parts = urlsplit(config.url)
    if parts.scheme == "file":
        from ots_tunnel.sinks.files.folder import FolderStore

        return FolderStore(Path(unquote(parts.path)))
    from ots_tunnel.sinks.files.bucket import BucketStore

    return BucketStore(config, path=path, deadline=deadline, spool_directory=spool_directory)
