"""Clocks of the emulated service; tests inject one they can move."""

from __future__ import annotations

import time
from typing import Final, Protocol

#: The latest time of the service, in the year 2255: nanoseconds since 1970 have to fit into int64.
LATEST: Final = 9_000_000_000


class Clock(Protocol):
    """Wall time of the emulated service."""

    def now(self) -> float:
        """Return seconds since 1970, UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Return seconds since 1970, UTC."""
        return time.time()


class ManualClock:
    """A clock that a test moves."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        """Return seconds since 1970, UTC."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock; a negative number steps it back."""
        self._now += seconds


class ShiftedClock:
    """Another clock, `shift` seconds ahead of it."""

    def __init__(self, clock: Clock, shift: float = 0.0) -> None:
        self._clock = clock
        self.shift = shift

    def now(self) -> float:
        """Return seconds since 1970, UTC."""
        return self._clock.now() + self.shift
