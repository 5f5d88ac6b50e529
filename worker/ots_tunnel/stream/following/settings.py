"""Times of a worker that follows a stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from ots_tunnel.errors import ConfigError
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.stream.calls.lease_table_creation import READY_SECONDS
from ots_tunnel.stream.holding.settings import LeaseSettings

#: Before the work on a shard begins again after a failure; it never gives up.
RETRY = Backoff(initial=1, factor=2, cap=60, jitter=0.25)


@dataclass(frozen=True, slots=True)
class FollowSettings:
    """Times in seconds; the defaults are those of the Java library.

    Args:
        leases: times of the leases.
        parent_interval: between two looks whether the parents of a shard are read.
        sync_interval: between two looks for new and dropped shards.
        ready_seconds: within which a new table of leases has to answer.
        start_us: Unix microseconds at which reading begins if the stream has no lease yet; None begins with the oldest
            records that the stream keeps.
        starts_anew: whether that is the time of this start (`Latest`), so that a table of leases that was deleted, and
            is created again, leaves changes out.
        stops_at_gaps: whether changes that may be missing end the worker; otherwise it says so and goes on.
        retry: pauses of a shard whose work has failed.

    Raises:
        ConfigError: names the field, what was found and what is allowed.
    """

    leases: LeaseSettings = field(default_factory=LeaseSettings)
    parent_interval: float = 5.0
    sync_interval: float = 10.0
    ready_seconds: float = READY_SECONDS
    start_us: int | None = None
    starts_anew: bool = False
    stops_at_gaps: bool = True
    retry: Backoff = RETRY

    def __post_init__(self) -> None:
        for name in ("parent_interval", "sync_interval", "ready_seconds"):
            if not 0 < getattr(self, name) < inf:  # not a number is neither
                raise ConfigError(f"{name}: found {getattr(self, name):g}, allowed is a number of seconds above 0")
