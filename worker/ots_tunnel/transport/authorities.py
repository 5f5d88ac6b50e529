"""Certificate authorities of a server: the system's, and those of a file that may change while the worker runs."""

from __future__ import annotations

import ssl
from pathlib import Path

from ots_tunnel.errors import ConfigError


class Authorities:
    """Certificates in PEM form.

    Args:
        path: of the file.
        field: of the worker's document that names it, for messages.

    Raises:
        ConfigError: the file cannot be read, or holds no certificates.
    """

    def __init__(self, path: Path, field: str) -> None:
        self._path = path
        try:
            self._text = path.read_bytes()
            self._context = _trusting(self._text)
        except OSError as error:
            # also that of TLS about a text without certificates
            words = error.strerror if not isinstance(error, ssl.SSLError) else "allowed are certificates in PEM form"
            raise ConfigError(f"{field}: {path}: {words}") from error

    def __repr__(self) -> str:
        return f"Authorities({self._path})"

    @property
    def text(self) -> bytes:
        """The certificates as the file has them; while it cannot be read or holds none, those that it had."""
        self._read_again()
        return self._text

    @property
    def context(self) -> ssl.SSLContext:
        """TLS that trusts them as well; another one once the file has changed."""
        self._read_again()
        return self._context

    def _read_again(self) -> None:
        try:
            text = self._path.read_bytes()
            if text != self._text:
                self._context = _trusting(text)
                self._text = text
        except OSError:
            return  # a Secret that is being replaced, or a mistake in it: what was right stays


def _trusting(text: bytes) -> ssl.SSLContext:
    """TLS that trusts the system's authorities and these.

    Raises:
        SSLError: the text holds no certificates.
    """
    context = ssl.create_default_context()
    context.load_verify_locations(cadata=text.decode("ascii", errors="replace"))
    return context
