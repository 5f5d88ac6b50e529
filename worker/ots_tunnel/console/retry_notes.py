"""Notes for people that calls are repeated."""

from __future__ import annotations

import time
from collections.abc import Callable

from ots_tunnel.errors import TunnelError

#: Seconds between two notes.
NOTE_PAUSE = 5.0


class RetryNotes:
    """Says that calls are repeated, so that nobody takes a patient client for one that hangs.

    Args:
        say: prints a line.
        clock: seconds, monotonic.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._next = float("-inf")
        self._silent = 0

    def __call__(self, operation: str, error: TunnelError) -> None:
        """Told of every call that is repeated, and why."""
        self._silent += 1
        if self._clock() < self._next:
            return
        self._next = self._clock() + NOTE_PAUSE
        others = f" ({self._silent:,} calls since the last note)" if self._silent > 1 else ""
        self._say(f"{operation} is repeated{others}: {error}")
        self._silent = 0
