"""Folders that survive a power loss.

A new file or folder is an entry of its parent folder, and an entry is on the disk only once the parent is flushed. A
folder that exists already may come from a process that was killed before it flushed anything, so its parents are
flushed as well.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

#: Errors of file systems that cannot flush folders, such as some network file systems.
_CANNOT_FLUSH = frozenset((errno.EINVAL, errno.ENOTSUP))


def make_folder(path: Path) -> None:
    """Create a folder with its parents where they are missing, and flush every parent.

    Raises:
        OSError: it cannot be created, or a disk failed.
    """
    path.mkdir(parents=True, exist_ok=True)
    for parent in path.absolute().parents:
        try:
            flush_folder(parent)
        except PermissionError:
            continue  # a folder above that this process may not read is not one that it has created


def flush_folder(path: Path) -> None:
    """Wait until the entries of a folder are on the disk; does nothing where the file system cannot flush folders.

    Raises:
        OSError: the folder does not exist or may not be read, or the disk failed.
    """
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _CANNOT_FLUSH:
            raise
    finally:
        os.close(handle)
