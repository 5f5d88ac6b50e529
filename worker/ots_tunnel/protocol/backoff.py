"""Schedules of pauses between the attempts of a call; pure (docs/protocol.md 5.4).

The caller draws the entropy, once for each pause, and sleeps so that a stop can interrupt it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

# Higher powers are above any cap and would overflow.
_LAST_ATTEMPT = 64


@dataclass(frozen=True, slots=True)
class Backoff:
    """An exponential schedule.

    Args:
        initial: first delay in seconds.
        factor: growth per attempt.
        cap: highest delay before jitter, in seconds.
        jitter: share by which a delay varies either way, 0 to 1.
        total: seconds after which no further attempt begins; infinite by default.
    """

    initial: float
    factor: float
    cap: float
    jitter: float
    total: float = math.inf

    def delay(self, attempt: int, entropy: float) -> float:
        """Seconds to wait after a failed attempt.

        Args:
            attempt: 0 after the first failure.
            entropy: uniform in [0, 1).
        """
        nominal = min(self.cap, self.initial * self.factor ** min(max(attempt, 0), _LAST_ATTEMPT))
        return nominal * (1 + self.jitter * (2 * entropy - 1))

    def may_retry(self, elapsed: float, delay: float) -> bool:
        """Whether an attempt that begins after `delay` more seconds still lies within the total."""
        return elapsed + delay <= self.total


#: Between attempts of one ReadRecords call.
READ_RETRY: Final = Backoff(initial=0.016, factor=2, cap=3, jitter=0.33, total=75)
#: Between attempts of any other call.
CALL_RETRY: Final = Backoff(initial=0.1, factor=2, cap=2, jitter=0.33, total=35)
