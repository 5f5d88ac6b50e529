"""The certificates by which brokers are known, from a file that may change while the worker runs.

librdkafka reads the file when a producer is made. So a producer whose connections fail is replaced once the file holds
others, such as those of a Secret that was corrected, or of authorities that took turns.
"""

from __future__ import annotations

from pathlib import Path


class FileCertificates:
    """Watches the file; without one nothing ever changes."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen = self._read()

    def __repr__(self) -> str:
        return f"FileCertificates({self._path})"

    def have_changed(self) -> bool:
        """Whether the file holds others than at the last call; one that cannot be read tells nothing."""
        found = self._read()
        if found is None or found == self._seen:
            return False
        self._seen = found
        return True

    def _read(self) -> bytes | None:
        try:
            return None if self._path is None else self._path.read_bytes()
        except OSError:
            return None  # a Secret that is being replaced; the producer says what it lacks
