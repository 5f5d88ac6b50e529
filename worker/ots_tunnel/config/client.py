"""Where a worker reads, and how it behaves as a client of the tunnel."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import Field, field_validator, model_validator

from ots_tunnel.config.base import ConfigModel, InstanceConfig


class TunnelConfig(InstanceConfig):
    """The tunnel that is consumed."""

    table: str = Field(min_length=1)
    """Source table."""
    tunnel_name: str = Field(min_length=1)
    """Tunnel name, for messages and metrics."""
    tunnel_id: str = Field(min_length=1)
    """Tunnel id; a worker never creates a tunnel."""
    end_time: datetime | None = None
    """Stop here instead of following for ever: records after it are not written (with a time zone)."""

    @field_validator("end_time")
    @classmethod
    def _has_a_time_zone(cls, end_time: datetime | None) -> datetime | None:
        if end_time is not None and end_time.tzinfo is None:
            raise ValueError("allowed is a time with a time zone, such as 2026-06-19T17:00:00+08:00")
        return end_time


class ClientConfig(ConfigModel):
    """How the worker behaves as a client of the tunnel."""

    tag_prefix: str = ""
    """Put before the host name in the client tag; the operator sets the first 8 characters of the object's uid."""
    heartbeat_interval_seconds: int = Field(default=10, ge=5)
    """Seconds between heartbeats; the service's minimum is 5."""
    heartbeat_timeout_seconds: int = Field(default=60, ge=6)
    """Without a heartbeat for so long the service gives the channels to others. More than the interval."""
    checkpoint_interval_seconds: float = Field(default=5, ge=0.1)
    """Confirmed progress is stored at most so often per channel."""
    max_parallel_channels: int = Field(default=0, ge=0)
    """Channels read at the same time; 0 means all."""
    lanes_per_channel: int = Field(default=8, ge=1)
    """Parallel writers inside one channel, by key."""
    memory_budget_bytes: int = Field(default=268_435_456, ge=16_777_216)
    """Bytes of records held by this worker, raw and parsed; reading waits beyond it."""
    drain_seconds: float = Field(default=45, ge=1)
    """Time a drain may take, less than the pod's termination grace period."""
    rate_limit_rows_per_second: int = Field(default=0, ge=0)
    """Rows read per second by this worker; 0 means no limit."""

    @model_validator(mode="after")
    def _timeout_exceeds_interval(self) -> Self:
        if self.heartbeat_timeout_seconds <= self.heartbeat_interval_seconds:
            raise ValueError(
                f"heartbeatTimeoutSeconds {self.heartbeat_timeout_seconds} must be more than "
                f"heartbeatIntervalSeconds {self.heartbeat_interval_seconds}"
            )
        return self

    @property
    def write_deadline(self) -> float:
        """D of the design's rule 4: seconds a write may take, and the fence's margin."""
        return (self.heartbeat_timeout_seconds - self.heartbeat_interval_seconds) / 3
