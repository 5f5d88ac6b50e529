"""Files in a folder: filled under a hidden name, flushed to the disk, then renamed."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ots_tunnel.folders import flush_folder, make_folder
from ots_tunnel.sinks.files.store import THREADS, FileSpoiled, disk_error, flush_file
from ots_tunnel.threads import DaemonThreads

#: Begins the name of a file that is being filled; published files never have it.
_HIDDEN = ".filling-"


class FolderStore:
    """A folder on this machine or on a mounted volume.

    Args:
        root: created where it is missing.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        #: Folders that are on the disk with their parents.
        self._made: set[str] = set()
        self._threads = DaemonThreads("folder", THREADS)

    def __repr__(self) -> str:
        return f"FolderStore({self._root})"

    async def check(self) -> None:
        """See `FileStore.check`."""
        await self._threads.run(self._check)

    async def spool(self, folder: str) -> Path:
        """See `FileStore.spool`: in the folder itself, from where it can be renamed."""
        return await self._threads.run(self._spool, folder)

    async def publish(self, spooled: Path, folder: str, name: str, before: Callable[[], None]) -> None:
        """See `FileStore.publish`."""
        await self._threads.run(flush_file, spooled)
        await self._threads.run(_rename, spooled, self._root / folder / name, before)

    async def names(self, folder: str, after: str = "") -> list[str]:
        """See `FileStore.names`."""
        return await self._threads.run(self._chosen, folder, lambda name: name > after and not name.startswith("."))

    async def read(self, folder: str, name: str) -> IO[bytes]:
        """See `FileStore.read`."""
        with _disk_errors():
            return await self._threads.run((self._root / folder / name).open, "rb")

    async def delete(self, folder: str, names: Sequence[str], before: Callable[[], None] = lambda: None) -> None:
        """See `FileStore.delete`."""
        await self._threads.run(self._delete, folder, names, before)

    async def tidy(self, folder: str) -> None:
        """See `FileStore.tidy`."""
        left = await self._threads.run(self._chosen, folder, lambda name: name.startswith(_HIDDEN))
        await self.delete(folder, left)

    def _check(self) -> None:
        with _disk_errors():
            make_folder(self._root)
            trial = self._root / f"{_HIDDEN}{uuid.uuid4().hex}"
            trial.touch()
            trial.unlink()

    def _spool(self, folder: str) -> Path:
        path = self._root / folder
        with _disk_errors():
            if folder not in self._made or not path.is_dir():
                make_folder(path)
                self._made.add(folder)
        return path / f"{_HIDDEN}{uuid.uuid4().hex}"

    def _chosen(self, folder: str, choice: Callable[[str], bool]) -> list[str]:
        """The entries that are chosen; the others are not held."""
        with _disk_errors():
            try:
                with os.scandir(self._root / folder) as entries:
                    return [entry.name for entry in entries if choice(entry.name)]
            except FileNotFoundError:
                return []

    def _delete(self, folder: str, names: Sequence[str], before: Callable[[], None]) -> None:
        for name in names:
            before()  # here, on the thread: it may have started late
            with _disk_errors():
                (self._root / folder / name).unlink(missing_ok=True)
        if names:
            # A file that comes back after a power loss would be read beside those that replaced it.
            with _disk_errors(), suppress(FileNotFoundError):
                flush_folder(self._root / folder)


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_error(error) from error


def _rename(spooled: Path, target: Path, before: Callable[[], None]) -> None:
    """Make a flushed file appear. `before` is called here, on the thread: it may have started late."""
    before()
    with _disk_errors():
        spooled.replace(target)
    try:
        flush_folder(target.parent)
    except OSError as error:
        raise FileSpoiled(f"{target.parent}: {error.strerror or error}") from error
