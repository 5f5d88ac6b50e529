"""What looks at the channels without a client have found: whether something is to be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peeked:
    """The last looks at every channel that can be read; times are seconds since 1970."""

    oldest: float | None = None
    """Time of the oldest of them; None while a channel was not looked at, or there is none."""
    waits: str = ""
    """A channel with something to read; empty where no look has found one."""
    failure: str = ""
    """Why the last look has failed; empty where it has not."""
    part: str = "channel"
    """The word for a channel."""
