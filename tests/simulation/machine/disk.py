"""The disk of a region's machines, and what is left of it after a loss of power.

Theory of operation
-------------------
Files are real ones in a folder of the story, so the product's calls run as they are. Three calls of `os` are watched:
`fsync`, `replace` and `unlink`. A flush of a file makes its bytes durable, a flush of a folder its entries. At a loss
of power each entry that was not flushed is as it is now or as it was at the last flush, by chance, and so are the
bytes at the end of a file: what nobody has flushed may be there nevertheless. The two entries of a renamed file are
one change: it has its new name or its old one.

A file is finished when its name is not hidden, and its bytes and its entry are durable: then `finished` is called.
`gone` is called when it is removed or replaced, `back` when a loss of power undoes that.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.simulation.machine.determinism import CURRENT, ProcessEnded

#: Where removed files are kept while a loss of power may bring them back.
_BIN = ".removed"

_real_fsync, _real_replace, _real_unlink = os.fsync, os.replace, os.unlink


class Disk:
    """One disk.

    Args:
        root: folder on the machine that tells the story, without links in its path.
        chance: decides what survives.
        finished: called with the path of a file and the name of the process that gave it its name.
        gone: called with the path of a finished file that was removed or replaced.
        back: called with the path of a finished file that is there again.
    """

    def __init__(
        self,
        root: Path,
        chance: random.Random,
        finished: Callable[[Path, str], None],
        gone: Callable[[Path], None],
        back: Callable[[Path], None],
    ) -> None:
        self.root = root
        self._chance = chance
        self._finished = finished
        self._gone = gone
        self._back = back
        #: Folder to its durable entries: name to inode.
        self._entries: dict[Path, dict[str, int]] = {}
        #: Inode to the durable bytes of its file.
        self._sizes: dict[int, int] = {}
        #: Inode to its file in the bin.
        self._removed: dict[int, Path] = {}
        #: Finished files, with their inodes.
        self._known: dict[Path, int] = {}
        self._namers: dict[int, str] = {}
        #: Calls that fail.
        self.failing = 0
        #: Calls until `strike` is called in the middle of one; it ends the process that makes the call.
        self.strikes_in: int | None = None
        self.strike: Callable[[], None] = lambda: None
        root.mkdir()
        (root.parent / _BIN).mkdir()

    # Calls of the product

    def flush(self, handle: int) -> None:
        """See `os.fsync`."""
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        self._begin_call(path)
        if path.is_dir():
            self._entries[path] = _entries(path)
        else:
            found = os.fstat(handle)
            self._sizes[found.st_ino] = found.st_size
        self._tell_finished()
        self._end_call()

    def replace(self, source: Path, target: Path) -> None:
        """See `os.replace`."""
        self._begin_call(target)
        inode, process = source.stat().st_ino, CURRENT.get()
        assert process is not None
        self._namers[inode] = process.name
        self._forget(target)
        self._keep(source, inode)
        _real_replace(source, target)
        self._end_call()

    def unlink(self, path: Path) -> None:
        """See `os.unlink`."""
        self._begin_call(path)
        self._forget(path)
        _real_unlink(path)
        self._end_call()

    def _begin_call(self, path: Path) -> None:
        if self.failing:
            self.failing -= 1
            raise OSError(errno.EIO, "Input/output error", str(path))

    def _end_call(self) -> None:
        if self.strikes_in is None:
            return
        if self.strikes_in:
            self.strikes_in -= 1
            return
        self.strikes_in = None
        self.strike()
        raise ProcessEnded(137)

    def _forget(self, path: Path) -> None:
        """A file loses its name."""
        if not path.exists():
            return
        inode = path.stat().st_ino
        self._keep(path, inode)
        if inode not in self._removed:
            self._sizes.pop(inode, None)  # the number may be another file's from now on
        if self._known.pop(path, None) is not None:
            self._gone(path)

    def _keep(self, path: Path, inode: int) -> None:
        """Keep a file that loses a durable name: a loss of power may bring it back under that name."""
        if self._entries.get(path.parent, {}).get(path.name) == inode and inode not in self._removed:
            self._removed[inode] = self.root.parent / _BIN / str(inode)
            os.link(path, self._removed[inode])

    def _tell_finished(self) -> None:
        for path, inode in self._durable():
            if self._known.get(path) != inode:
                self._known[path] = inode
                self._finished(path, self._namers[inode])

    def _durable(self) -> list[tuple[Path, int]]:
        """Files that are there, whose bytes and entry are durable."""
        return [
            (path, inode)
            for folder, entries in self._entries.items()
            for name, inode in entries.items()
            if inode in self._sizes and not name.startswith(".")
            for path in (folder / name,)
            if path.exists() and path.stat().st_ino == inode and path.stat().st_size == self._sizes[inode]
        ]

    # Loss of power

    def lose_power(self) -> None:
        """Leave what a disk may hold when the power comes back."""
        for folder in sorted((self.root, *(path for path in self.root.rglob("*") if path.is_dir()))):
            if folder.exists():
                self._revert(folder)
        for path in sorted(path for path in self.root.rglob("*") if path.is_file()):
            found = path.stat()
            durable = self._sizes.get(found.st_ino, 0)
            if durable < found.st_size and self._chance.random() < 0.5:
                os.truncate(path, durable)
            self._sizes[found.st_ino] = path.stat().st_size
        self._entries = {
            folder: _entries(folder)
            for folder in (self.root, *(path for path in self.root.rglob("*") if path.is_dir()))
        }
        there = {path: inode for path, inode in self._durable() if inode in self._namers}
        for path in [path for path in self._known if self._known[path] != there.get(path)]:
            del self._known[path]
            self._gone(path)
        for path, inode in there.items():
            if path not in self._known:
                self._known[path] = inode
                self._back(path)

    def _revert(self, folder: Path) -> None:
        """Undo changes of a folder's entries that were not flushed, each by chance."""
        durable, now = self._entries.get(folder, {}), _entries(folder)
        renamed = {inode: name for name, inode in durable.items() if name not in now and inode in now.values()}
        for name in sorted((durable.keys() | now.keys()) - set(renamed.values())):
            if durable.get(name) == now.get(name) or self._chance.random() < 0.5:
                continue
            path = folder / name
            if path.is_dir():
                _remove(path)
            elif name in now:
                _real_unlink(path)
            if name in durable:
                os.link(self._removed[durable[name]], path)
            if (before := renamed.get(now.get(name, 0))) is not None:
                os.link(self._removed[durable[before]], folder / before)


def _remove(folder: Path) -> None:
    """Remove a folder with all it holds."""
    for path in folder.iterdir():
        _remove(path) if path.is_dir() else _real_unlink(path)
    folder.rmdir()


def _entries(folder: Path) -> dict[str, int]:
    return {entry.name: entry.inode() for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)}


def install_disk(disk: Disk) -> None:
    """Let simulated processes of this interpreter use a disk, for paths below its root."""

    def is_ours(path: Any) -> bool:
        return CURRENT.get() is not None and disk.root in (Path(path), *Path(path).parents)

    def fsync(handle: Any) -> None:
        if is_ours(os.readlink(f"/proc/self/fd/{handle}")):
            disk.flush(handle)

    def replace(source: Any, target: Any, **options: Any) -> None:
        disk.replace(Path(source), Path(target)) if is_ours(target) else _real_replace(source, target, **options)

    def unlink(path: Any, **options: Any) -> None:
        disk.unlink(Path(path)) if is_ours(path) else _real_unlink(path, **options)

    os.fsync, os.replace, os.unlink = fsync, replace, unlink
