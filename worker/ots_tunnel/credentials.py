"""Credentials, given or read from files that may change at run time."""

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

#: Seconds between two checks of the files: every request needs credentials, and a check costs as much as a signature.
LOOK_INTERVAL = 1.0

#: Returns the credentials for the next request.
CredentialsProvider = Callable[[], Credentials]


def static_credentials(credentials: Credentials) -> CredentialsProvider:
    """A provider of fixed credentials."""
    return lambda: credentials


def provider_of(credentials: CredentialsProvider | Credentials) -> CredentialsProvider:
    """The provider for credentials that are a pair or a provider.

    Raises:
        ConfigError: the argument is neither.
    """
    if not isinstance(credentials, Credentials) and not callable(credentials):
        kind = type(credentials).__name__
        raise ConfigError(f"credentials: found {kind}, allowed are Credentials, or a function that returns them")
    return static_credentials(credentials) if isinstance(credentials, Credentials) else credentials


class FileCredentials:
    """Reads `accessKeyId`, `accessKeySecret` and optional `securityToken` of a mounted Secret.

    Kubernetes replaces all files of a mounted Secret at once, by one symbolic link. So the three files are compared by
    their modification times and read together when one of them changed.

    Args:
        directory: folder of the files.
        interval: seconds between two checks.
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
        self._last_error = ""

    def checked(self, field: str) -> Self:
        """This provider, after a first read: missing files are a wrong document, not a failed call.

        Args:
            field: field of the document that names the folder, for the message.

        Raises:
            ConfigError: a file is missing or empty; names the field and the file.
        """
        try:
            self()
        except ConfigError as error:
            raise ConfigError(f"{field}: {error}") from error
        return self

    def __call__(self) -> Credentials:
        """Current credentials; the last good ones while the files are unreadable.

        Raises:
            ConfigError: a file is missing or empty, and no credentials were read before; names the file.
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
            self._log_once(str(error))
        else:
            self._last_error = ""
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
            if read == stamp:  # otherwise the id of one pair could get the secret of another
                self._stamp = stamp
                return pair

    def _log_once(self, error: str) -> None:
        """Log every change of the error; the service decides whether the previous pair is still valid."""
        if error != self._last_error:
            self._last_error = error
            text = "credentials cannot be read, the previous ones stay in use"
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
            found = path.read_text().strip()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            raise ConfigError(f"{path}: found bytes that are not text") from None
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from error
        if not found.isprintable():
            # a header of every request: none would be sent
            raise ConfigError(f"{path}: has a line break or another control character within, allowed is one line")
        return found or None
