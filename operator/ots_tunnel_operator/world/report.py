"""What workers report of themselves, their channels and their sink."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkerChannel:
    """One channel in a worker's report, as far as decisions need it; times are seconds since 1970."""

    channel_id: str
    state: str
    rows: int
    caught_up: bool
    consumed_up_to: float | None
    lag_seconds: int | None
    finished: bool
    end_reached: bool
    """Whether everything up to the end time is confirmed, and nothing more is read."""
    error: str | None


@dataclass(frozen=True, slots=True)
class ReportedGap:
    """Changes of a channel that a worker misses, between two times in Unix seconds."""

    channel_id: str
    start: float
    end: float
    is_passed: bool = False
    """Whether the worker reads on behind it, as its settings say: it was accepted."""


@dataclass(frozen=True, slots=True)
class RefusedCount:
    """Records that a sink refused for good and that were left out, and how many different keys they have.

    Args:
        since: start of the process that has counted them, Unix seconds; None where an earlier release does not tell.
    """

    records: int = 0
    keys: int = 0
    since: float | None = None


@dataclass(frozen=True, slots=True)
class SinkContact:
    """What a worker knows of its sink."""

    has_answered: bool
    """Whether it was found ready, or has confirmed a write."""
    failing_seconds: float | None = None
    """For how long the write that has failed longest is tried again, by the worker's clock; None where none fails."""
    error: str = ""
    """The last failure of that write."""


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """The /channels document of one worker, as far as decisions need it."""

    client_id: str
    rows_per_second: float | None
    """None in the worker's first second."""
    busy_percent: int | None
    """None in the worker's first second."""
    error: str | None
    completed: bool
    channels: tuple[WorkerChannel, ...]
    gaps: tuple[ReportedGap, ...] = ()
    tunnel_id: str = ""
    """Id of the tunnel that the worker consumes; empty is unknown."""
    refused: RefusedCount | None = None
    """Since the start of the worker's process; None where an earlier release does not tell."""
    sink: SinkContact | None = None
    """None where the sink, or an earlier release, does not tell."""


@dataclass(frozen=True, slots=True)
class KeptReport:
    """The last report of a worker that did not answer this time."""

    report: WorkerReport
    time: float
    """Time of the look that brought it, by the operator's clock, Unix seconds."""
