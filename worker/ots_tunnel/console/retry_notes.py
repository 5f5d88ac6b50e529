"""Notes on a terminal about calls that are retried."""

from __future__ import annotations

import time
from collections.abc import Callable

from ots_tunnel.errors import TunnelError

#: Seconds between two notes.
NOTE_PAUSE = 5.0


class RetryNotes:
    """Prints a note while calls are retried, so that a waiting command does not look hung.

    Args:
        say: prints a line.
        clock: seconds, monotonic.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._next = float("-inf")
        self._unreported = 0

    def __call__(self, operation: str, error: TunnelError) -> None:
        """Count a retried call; print a note unless one was printed a moment ago."""
        self._unreported += 1
        if self._clock() < self._next:
            return
        self._next = self._clock() + NOTE_PAUSE
        others = f" ({self._unreported:,} calls since the last note)" if self._unreported > 1 else ""
        self._say(f"{operation} is retried{others}: {error}")
        self._unreported = 0
