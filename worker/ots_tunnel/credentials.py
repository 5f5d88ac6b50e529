"""Credentials from files that may change while we run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from ots_tunnel.errors import ConfigError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import Credentials

logger = logging.getLogger(__name__)

#: Seconds between two looks at the files: every request asks, and a look costs as much as its signature.
LOOK_INTERVAL = 1.0

#: Gives the credentials to sign the next request with.
CredentialsProvider = Callable[[], Credentials]


def static_credentials(credentials: Credentials) -> CredentialsProvider:
    """Always the same credentials."""
    return lambda: credentials


def provider_of(credentials: CredentialsProvider | Credentials) -> CredentialsProvider:
    """What gives these credentials: a pair gives itself.

    Raises:
        ConfigError: they are neither.
    """
    if not isinstance(credentials, Credentials) and not callable(credentials):
        kind = type(credentials).__name__
        raise ConfigError(f"credentials: found {kind}, allowed are Credentials, or what returns them when called")
    return static_credentials(credentials) if isinstance(credentials, Credentials) else credentials


class FileCredentials:
    """Reads `accessKeyId`, `accessKeySecret` and optional `securityToken` of a mounted Secret.

    A mounted Secret is swapped by replacing one symbolic link, so the three files are compared by their
    modification times and read again together when one changed.

    Args:
        directory: where the files are.
        interval: seconds between two looks at them.
        clock: seconds, monotonic.
    """

    def __init__(
        self, directory: Path, *, interval: float = LOOK_INTERVAL, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._directory = directory
        self._interval = interval
        self._clock = clock
        self._next_look = float("-inf")
        self._stamp: tuple[int, ...] = ()
        self._credentials: Credentials | None = None
        self._told = ""

    def checked(self, field: str) -> Self:
        """These, once the files are there: missing ones are a wrong document, not a failed call.

        Args:
            field: of the document that names the folder, for the message.

        Raises:
            ConfigError: a file is missing or empty; names the field and the file.
        """
        try:
            self()
        except ConfigError as error:
            raise ConfigError(f"{field}: {error}") from error
        return self

    def __call__(self) -> Credentials:
        """The credentials as the files say now, or said last: files that are being replaced by hand end nobody's work.

        Raises:
            ConfigError: a file is missing or empty, and always was; names the file.
        """
        now = self._clock()
        if self._credentials is not None and now < self._next_look:
            return self._credentials
        self._next_look = now + self._interval
        try:
            self._credentials = self._read_pair()
        except ConfigError as error:
            if self._credentials is None:
                raise
            self._tell(str(error))
        else:
            self._told = ""
        return self._credentials

    def _read_pair(self) -> Credentials:
        stamp = self._current_stamp()
        if self._credentials is not None and stamp == self._stamp:
            return self._credentials
        while True:
            pair = Credentials(
                self._read("accessKeyId"), self._read("accessKeySecret"), self._read_optional("securityToken")
            )
            read, stamp = stamp, self._current_stamp()
            if read == stamp:  # the id of one pair with the secret of another would be refused
                self._stamp = stamp
                return pair

    def _tell(self, error: str) -> None:
        """Once for every trouble; whether the former pair still serves, the service says."""
        if error != self._told:
            self._told = error
            text = "credentials cannot be read, the former ones stay"
            logger.warning(text, extra={"action": LogAction.LOGIN_UNREADABLE, "error": error})

    def _current_stamp(self) -> tuple[int, ...]:
        return tuple(self._modified(name) for name in ("accessKeyId", "accessKeySecret", "securityToken"))

    def _modified(self, name: str) -> int:
        path = self._directory / name
        try:
            return path.stat().st_mtime_ns
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from error

    def _read(self, name: str) -> str:
        value = self._read_optional(name)
        if not value:
            raise ConfigError(f"{self._directory / name}: missing or empty")
        return value

    def _read_optional(self, name: str) -> str | None:
        path = self._directory / name
        try:
            return path.read_text().strip() or None
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            raise ConfigError(f"{path}: found bytes that are no text") from None
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from error
