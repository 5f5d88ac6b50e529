"""What the service has: tables, the tunnel, and what a look at a channel has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ots_tunnel.model import ChannelId, Checkpoint, TunnelDescription
from ots_tunnel.tables import TableSchema


@dataclass(frozen=True, slots=True)
class Table:
    """A table that exists; `empty` is None where this was not checked."""

    schema: TableSchema
    empty: bool | None = None
    stream_retention_seconds: int | None = None
    stream_start: float | None = None
    """Time at which the stream was enabled last, by the service's clock, Unix seconds; None is unknown."""
    created: float | None = None
    """Time at which the table was created, by the service's clock, Unix seconds; None is unknown."""


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A tunnel that exists; `checkpoints` are read only while it matters whether it has moved."""

    description: TunnelDescription
    checkpoints: Mapping[ChannelId, Checkpoint] | None = None
    same_since: float | None = None
    """Time of the first of the looks in a row that found the same channels with the same states and owners, by the
    operator's clock; None is unknown."""
    seen: float | None = None
    """Time of the look that found it, by the operator's clock; None is that of this look."""
    faults: tuple[str, ...] = ()
    """What is wrong with rows of a table of leases that stands for the tunnel."""
    unfit: str = ""
    """Which setting of that table keeps workers from starting; empty where they all fit."""


@dataclass(frozen=True, slots=True)
class Peek:
    """The last look at a channel without a client, or at a shard by the checkpoint of its lease."""

    time: float
    """Seconds since 1970, by the operator's clock."""
    waits: bool
    """Whether it had something to read."""
    empty: float | None = None
    """Until when everything was read, by the last look that found nothing: seconds since 1970, by the service's clock
    as consume points are; None is unknown. Of a lease also by one that has found a record: the oldest one unread."""
    is_of_lease: bool = False
    """Whether it is a bound that holds whoever reads the shard."""
    has_failed: bool = False
    """Whether a later look at the shard has failed, so that this one grows old."""
    is_trimmed: bool = False
    """Whether the stream has dropped records behind the checkpoint of a lease: no worker can read them any more."""

    def moved(self, seconds: float) -> Peek:
        """With the time of the look changed, after the operator's clock was set."""
        return replace(self, time=self.time + seconds)
