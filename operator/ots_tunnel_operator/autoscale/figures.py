"""What one look says of load and fleet. None is unknown, never 0."""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel_operator.autoscale.peeked import Peeked


@dataclass(frozen=True, slots=True)
class Figures:
    """One look at a fleet; times are seconds since 1970, shares from 0 to 1."""

    time: float
    channels: int | None
    """Channels that can be read in the present stage."""
    lag: float | None
    """Seconds by which the slowest stream channel is behind; 0 where its worker reports that it is caught up."""
    busy: float | None
    """Mean share of what the workers that hold channels can do: of their time in the sink, or of their rate limit."""
    rate: float | None
    """Rows per second of all workers."""
    copies_base: bool = False
    """Whether existing rows are read: there is no lag then."""
    unsettled: str = ""
    """Why the figures of this moment say nothing about the number of workers: pods that are not ready, a rollout,
    channels that move. Empty where the fleet is settled."""
    missing: int = 0
    """Pods that have not become ready for so long that they are not waited for: no room on the nodes, or one that
    keeps ending. The others are a settled fleet, of which some may go."""
    slowest: str = ""
    """The slowest channel and its worker, in words; empty where it is not known."""
    rows: int | None = None
    """Rows that the service has counted on all channels."""
    retention: float | None = None
    """Seconds for which the table keeps its stream."""
    is_over: bool = False
    """Whether the end time has passed."""
    peeked: Peeked | None = None
    """What looks without a client have found; None without a description of the tunnel."""
