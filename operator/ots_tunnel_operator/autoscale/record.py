"""What the status keeps of the autoscaler, so that a restarted operator does not forget a number or the last change.

desired        the number of workers, since the last change; it holds until the next one
scaled         when it was changed last: a restart does not end the pause after a change
ineffective    when a scale-up was taken back, where that was the last change: a restart does not try it again at once.
               After another change only the process that has seen it knows, and the next one may try it earlier
generation     of the spec: an edit ends the pause after scale-ups of no use
slept          since when no worker runs because nothing is to be read, for the spec as it is now
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """The recorded part; times are seconds since 1970, None is never."""

    desired: int
    scaled: float | None = None
    ineffective: float | None = None
    slept: float | None = None
    generation: int | None = None
