"""User name and password for the brokers, from files that may change while the worker runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ots_tunnel.credentials import LOOK_INTERVAL
from ots_tunnel.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Login:
    """User name and password; the password is never printed."""

    username: str
    password: str = field(repr=False)


class FileLogin:
    """Reads `username` and `password` of a mounted Secret.

    Args:
        directory: where the files are.
        clock: seconds, monotonic.
    """

    def __init__(self, directory: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._clock = clock
        self._next_look = float("-inf")
        self._login: Login | None = None

    def __repr__(self) -> str:
        return f"FileLogin({self._directory})"

    def read(self) -> Login:
        """Read the login from the files.

        Raises:
            ConfigError: a file is missing or empty; names the file.
        """
        self._next_look = self._clock() + LOOK_INTERVAL
        login = self._read_pair()
        # Read until two reads agree: a mounted Secret may be swapped between its two files.
        while login != (again := self._read_pair()):
            login = again
        self._login = login
        return login

    @property
    def last(self) -> Login:
        """The login as it was read last.

        Raises:
            ConfigError: as `read`, where it was not read before.
        """
        return self._login or self.read()

    def changed(self, *, at_once: bool = False) -> Login | None:
        """Return the login if it is not the one read last, else None.

        Args:
            at_once: read the files even if that was done within the last second.

        Raises:
            ConfigError: as `read`.
        """
        if not at_once and self._clock() < self._next_look:
            return None
        before = self._login
        return login if (login := self.read()) != before else None

    def _read_pair(self) -> Login:
        return Login(self._read("username"), self._read("password"))

    def _read(self, name: str) -> str:
        path = self._directory / name
        try:
            value = path.read_text().strip("\r\n")
        except OSError as error:
            raise ConfigError(f"sink.kafka.sasl.directory: {path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"sink.kafka.sasl.directory: {path}: no text in UTF-8") from error
        if not value:
            raise ConfigError(f"sink.kafka.sasl.directory: {path}: is empty")
        return value
