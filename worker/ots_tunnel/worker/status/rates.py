"""How fast something grows, and how busy the worker is: figures over the last seconds."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Seconds over which a rate is the mean: long enough for a heartbeat interval of 10 s, at which it is sampled.
WINDOW = 15.0


class Rate:
    """Mean growth per second of a counter over the last `WINDOW` seconds."""

    def __init__(self, read: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._samples: deque[tuple[float, float]] = deque([(clock(), read())])

    def sample(self) -> float | None:
        """Take a sample and return the rate; None in the first second, when it is unknown."""
        now, value = self._clock(), self._read()
        if now - self._samples[-1][0] >= 1:
            self._samples.append((now, value))
        while len(self._samples) > 2 and now - self._samples[1][0] >= WINDOW:
            self._samples.popleft()
        since, base = self._samples[0]
        return (value - base) / (now - since) if now - since >= 1 else None


class BusyClock:
    """Measures the time in which at least one activity is under way."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._activities = 0
        self._since = 0.0
        self._busy = 0.0

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Count the block as an activity."""
        if self._activities == 0:
            self._since = self._clock()
        self._activities += 1
        try:
            yield
        finally:
            self._activities -= 1
            if self._activities == 0:
                self._busy += self._clock() - self._since

    def seconds(self) -> float:
        """Busy seconds so far, the present activity included."""
        return self._busy + (self._clock() - self._since if self._activities else 0.0)
