"""How long to wait before trying or reading again, as pure schedules (docs/protocol.md 5.4).

The caller draws the entropy, once per sleep, and sleeps in a way that can be interrupted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

#: A page beyond one of these counts as full where the service does not say whether more is there.
FULL_PAGE_ROWS: Final = 500
FULL_PAGE_BYTES: Final = 900 * 1024

# Powers beyond this are above any cap and would overflow.
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
#: Between reads of a stream channel that has nothing new; never gives up.
IDLE_READ: Final = Backoff(initial=0.02, factor=5, cap=5, jitter=0.25)
#: Between reads of a stream channel in which records come faster than `IDLE_READ` would ask for them.
TRICKLE_READ: Final = Backoff(initial=0.01, factor=1, cap=0.01, jitter=0.25)
#: The attempt of such a channel; so many empty pages later it is an idle one.
TRICKLE: Final = -5
#: Before connecting with a new client: uniform between 1 and 10,000 ms.
RECONNECT: Final = Backoff(initial=5.0005, factor=1, cap=5.0005, jitter=4.9995 / 5.0005)

#: Pauses from `LONG_PAUSE` on end at whole ticks of the clock, seconds.
LONG_PAUSE: Final = 1.0
TICK: Final = 0.5


def idle_pause(attempt: int, now: float, entropy: float) -> float:
    """Seconds until a stream channel that has no more for the moment is read again.

    Args:
        attempt: of the idle schedule; below 0 records trickle in.
        now: see `aligned`.
        entropy: uniform in [0, 1).
    """
    return aligned((IDLE_READ if attempt >= 0 else TRICKLE_READ).delay(attempt, entropy), now)


def aligned(pause: float, now: float) -> float:
    """A pause that is lengthened a little so that it ends together with those of other channels.

    Waking once for several channels takes half the CPU of waking for each of them.

    Args:
        pause: seconds; short ones stay as they are.
        now: seconds of a clock that all channels share.
    """
    return pause if pause < LONG_PAUSE else math.ceil((now + pause) / TICK) * TICK - now


def reads_on(*, may_more: bool | None, rows: int, size_bytes: int) -> bool:
    """Whether to read the next page at once instead of backing off.

    Args:
        may_more: what the service says; alone decides where it says anything.
        rows: records of the page.
        size_bytes: bytes of the answer.
    """
    if may_more is not None:
        return may_more
    return rows > FULL_PAGE_ROWS or size_bytes > FULL_PAGE_BYTES
