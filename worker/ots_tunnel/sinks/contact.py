"""What a sink knows of its destination: when it answered, and which writes fail and are tried again.

A sink repeats what fails for a moment without a limit of tries, so a destination that is gone looks like a slow one.
The worker's report has what is known (`/channels`), and the operator judges it.

Example: a web service refuses connections from 12:00:00 on. Eight lanes try their batches again; `failing` is the batch
that has failed since 12:00:00. At 12:05:10 that batch is taken: `confirmed` is 12:05:10, and `failing` is the next one,
until it passes, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ots_tunnel.sinks.retries import log_retry


@dataclass(frozen=True, slots=True)
class FailingWrite:
    """A write that is tried again, or the first look at a destination that cannot be reached yet.

    Args:
        since: Unix seconds of the first of its failures in a row.
        error: the last one, without secrets.
    """

    since: float
    error: str


@dataclass(frozen=True, slots=True)
class Contact:
    """What is known of a destination; times are Unix seconds, None is never.

    Args:
        looked: it was found ready without a write, such as a topic that exists.
        confirmed: it confirmed a write.
        failing: the write that has failed for the longest time; None where none fails.
    """

    looked: float | None = None
    confirmed: float | None = None
    failing: FailingWrite | None = None


class Tries:
    """The tries of one write; see `Writes.tries`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.failing: FailingWrite | None = None

    def __repr__(self) -> str:
        return f"Tries({self.failing})"

    def failed(self, sentence: str, error: str, **destination: str) -> None:
        """A try failed, and another one follows; logs as `log_retry`."""
        since = self._clock() if self.failing is None else self.failing.since
        self.failing = FailingWrite(since, error)
        log_retry(sentence, error, **destination)

    def advanced(self) -> None:
        """A part of the write is stored: what fails afterwards is another failure."""
        self.failing = None


class Writes:
    """The writes of a sink, for its `Contact`.

    Args:
        clock: Unix seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._looked: float | None = None
        self._confirmed: float | None = None
        self._tries: set[Tries] = set()

    def __repr__(self) -> str:
        return f"Writes({self.contact})"

    def looked(self) -> None:
        """The destination was found ready."""
        self._looked = self._clock()

    def confirmed(self) -> None:
        """The destination confirmed a write."""
        self._confirmed = self._clock()

    @contextmanager
    def tries(self) -> Iterator[Tries]:
        """The tries of one write: it fails no more once the block is left, in whatever way."""
        tries = Tries(self._clock)
        self._tries.add(tries)
        try:
            yield tries
        finally:
            self._tries.discard(tries)

    @property
    def contact(self) -> Contact:
        """What is known now."""
        failing = [tries.failing for tries in self._tries if tries.failing is not None]
        oldest = min(failing, key=lambda write: (write.since, write.error), default=None)
        return Contact(self._looked, self._confirmed, oldest)
