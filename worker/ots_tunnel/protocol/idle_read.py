"""Pauses between the reads of a stream channel whose last page did not announce more records; pure.

Theory of operation
-------------------
The pace of a channel follows the records that its pages hold:

    pace         pause before the next read        an empty page           a page with records
    UNKNOWN      none: the first read              BACKING_OFF, step 0     BACKING_OFF, step 0
    BACKING_OFF  20 ms x 5^step, 5 s at most       step + 1                step - 1, 1 at most, 0 at least;
                                                                           TRICKLING for several records at step 0
    TRICKLING    10 ms                             BACKING_OFF, step 0,    TRICKLING, counted anew for several
                                                   after five in a row     records

A pause therefore settles near the time between two records: it does not grow to its cap under a light load, and it
does not ask for every record on its own. A page that is full, or that announces more, is followed by a read at once.

Example: an idle channel at step 4 pauses for 5 s. A record arrives: step 1, 100 ms. Three more arrive in that time:
step 0, 20 ms. Two more arrive: TRICKLING, 10 ms. Five empty pages later it backs off again from 20 ms.

Source: docs/protocol.md 5.4.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Final, Self

from ots_tunnel.protocol.backoff import Backoff

#: A page beyond one of these counts as full where the service does not announce more.
FULL_PAGE_ROWS: Final = 500
FULL_PAGE_BYTES: Final = 900 * 1024

#: Between reads of a stream channel that has nothing new; never gives up.
IDLE_READ: Final = Backoff(initial=0.02, factor=5, cap=5, jitter=0.25)
#: Between reads of a stream channel in which records come faster than the first pause of `IDLE_READ` asks for them.
TRICKLE_READ: Final = Backoff(initial=0.01, factor=1, cap=0.01, jitter=0.25)
#: Empty pages in a row that end a trickle; own choice: 50 ms, a few times the pause.
TRICKLE_EMPTY_PAGES: Final = 5
#: Highest step after a page with records: 100 ms, so that one record after a silence is enough for short pauses.
LIVELY_STEP: Final = 1

#: Pauses from `LONG_PAUSE` on end at whole ticks of the clock, seconds.
LONG_PAUSE: Final = 1.0
TICK: Final = 0.5


class Pace(enum.Enum):
    """Pace of a channel's reads."""

    UNKNOWN = enum.auto()
    """Nothing yet, or the last page was full."""
    BACKING_OFF = enum.auto()
    """Empty pages lengthen the pause, records shorten it."""
    TRICKLING = enum.auto()
    """Several records arrived within the shortest pause of the schedule."""


@dataclass(frozen=True, slots=True)
class IdleReads:
    """Pace of one channel, replaced after every page.

    Args:
        count: BACKING_OFF: step of the schedule, from 0. TRICKLING: empty pages in a row.
    """

    pace: Pace = Pace.UNKNOWN
    count: int = 0

    def after(self, *, rows: int, size_bytes: int, may_more: bool | None) -> Self | None:
        """The pace after a page; None when the next one is to be read at once.

        Args:
            rows: records of the page.
            size_bytes: bytes of the answer.
            may_more: whether the service announces more; None if it does not say.
        """
        if reads_on(may_more=may_more, rows=rows, size_bytes=size_bytes):
            return None
        return self._after_empty_page() if rows == 0 else self._after_records(rows)

    def pause(self, now: float, entropy: float) -> float:
        """Seconds until the next read.

        Args:
            now: see `aligned`.
            entropy: uniform in [0, 1).
        """
        if self.pace is Pace.TRICKLING:
            return TRICKLE_READ.delay(0, entropy)
        return aligned(IDLE_READ.delay(self.count, entropy), now)

    def _after_empty_page(self) -> Self:
        match self.pace:
            case Pace.UNKNOWN:
                return type(self)(Pace.BACKING_OFF)
            case Pace.TRICKLING if self.count + 1 >= TRICKLE_EMPTY_PAGES:
                return type(self)(Pace.BACKING_OFF)
            case _:
                return type(self)(self.pace, self.count + 1)

    def _after_records(self, rows: int) -> Self:
        if self.pace is Pace.UNKNOWN:
            return type(self)(Pace.BACKING_OFF)
        if rows > 1 and (self.pace is Pace.TRICKLING or self.count == 0):
            return type(self)(Pace.TRICKLING)
        if self.pace is Pace.TRICKLING:
            return self
        return type(self)(Pace.BACKING_OFF, max(0, min(self.count - 1, LIVELY_STEP)))


def reads_on(*, may_more: bool | None, rows: int, size_bytes: int) -> bool:
    """Whether to read the next page at once.

    Args:
        may_more: what the service announces; it alone decides unless it is None.
        rows: records of the page.
        size_bytes: bytes of the answer.
    """
    if may_more is not None:
        return may_more
    return rows > FULL_PAGE_ROWS or size_bytes > FULL_PAGE_BYTES


def aligned(pause: float, now: float) -> float:
    """A long pause, lengthened so that it ends together with those of other channels.

    One wake-up for several channels takes half the CPU of one for each of them.

    Args:
        pause: seconds; those below `LONG_PAUSE` stay as they are.
        now: seconds of a clock that all channels share.
    """
    return pause if pause < LONG_PAUSE else math.ceil((now + pause) / TICK) * TICK - now
