"""An HPA on lag, as a user of the object: what most people build first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

#: Lag in seconds that it aims at, and seconds for which the largest number counts before it goes down: the default.
TARGET, WINDOW = 60.0, 300.0
#: Seconds between two of its looks.
LOOK = 15.0
#: Relative difference that it ignores.
TOLERANCE = 0.1


class LagHpa:
    """A HorizontalPodAutoscaler on `status.lag.seconds`, by the algorithm of Kubernetes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._asked: list[tuple[float, int]] = []

    def choose(self, found: Mapping[str, Any], now: float) -> int:
        """The number of workers from now on."""
        workers: int = found["spec"]["replicas"]
        lag = ((found.get("status") or {}).get("lag") or {}).get("seconds")
        if lag is None:
            return workers
        ratio = lag / TARGET
        asked = workers if abs(ratio - 1) <= TOLERANCE else math.ceil(workers * ratio)
        asked = max(1, min(self._most, asked, max(4, 2 * workers)))
        self._asked = [item for item in self._asked if item[0] > now - WINDOW] + [(now, asked)]
        return asked if asked > workers else min(workers, max(number for _, number in self._asked))
