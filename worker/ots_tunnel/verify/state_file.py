"""The file from which a comparison or a copy resumes; it is replaced atomically."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from ots_tunnel.errors import ConfigError
from ots_tunnel.folders import flush_folder

#: Seconds between two writes; a killed run repeats at most the slices of one pause.
WRITE_PAUSE = 1.0


class StateFile:
    """Writes a state at most once a second, readable by its owner only because it holds keys and values of rows.

    Args:
        path: path of the file.
        text: returns the current contents.
        clock: seconds, monotonic.
    """

    def __init__(self, path: Path, text: Callable[[], str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._text = text
        self._clock = clock
        self._next = float("-inf")
        self._changed = False

    def changed(self) -> None:
        """Note that the contents changed, and write them if a write is due."""
        self._changed = True
        self.write_if_due()

    def write_if_due(self) -> None:
        """Write changed contents, unless the last write was less than `WRITE_PAUSE` ago.

        Raises:
            ConfigError: the file cannot be written.
        """
        if self._changed and self._clock() >= self._next:
            self.write()

    def write(self) -> None:
        """Write the contents now.

        Raises:
            ConfigError: the file cannot be written.
        """
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(self._text())
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
            flush_folder(self.path.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise ConfigError(f"{self.path}: the state cannot be written: {error.strerror}") from error
        self._changed = False
        self._next = self._clock() + WRITE_PAUSE

    def remove(self) -> None:
        """Delete the file after a complete comparison.

        Raises:
            ConfigError: it cannot be deleted: the next comparison would resume from it.
        """
        try:
            self.path.unlink(missing_ok=True)
            flush_folder(self.path.parent)
        except OSError as error:
            raise ConfigError(f"{self.path}: the state cannot be deleted: {error.strerror}") from error


def read_state_file(path: Path) -> str | None:
    """Text of the file; None if it does not exist.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not a state file: {error}") from error
