"""Source of a worker, and its settings as a client of the tunnel."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from ots_tunnel.config.allowed import Words
from ots_tunnel.config.base import ConfigModel, InstanceConfig, TableName
from ots_tunnel.config.problems import Contradiction, NotAllowed

#: Seconds, the service's minimum (docs/protocol.md 5.5).
SHORTEST_INTERVAL = 5


class TunnelConfig(InstanceConfig):
    """The tunnel to consume."""

    table: TableName
    """Source table."""
    tunnel_name: Annotated[str, Field(pattern=r"^\S+$"), Words("a name without spaces")]
    """Tunnel name, for messages and metrics."""
    tunnel_id: Annotated[
        str, Field(pattern=r"^\S+$"), Words("the id that `ots-tunnel tunnel create` or `list` shows, without spaces")
    ]
    """Tunnel id; a worker never creates a tunnel."""
    end_time: datetime | None = None
    """The worker stops at this time and writes no later records; with a time zone. None: it never stops."""
    on_possible_gap: Literal["Stop", "Continue"] = "Stop"
    """What to do where changes may be missing, because they were not read within the stream's retention. Stop: end with
    exit code 14. Continue: warn, count it, and go on."""

    read_until: datetime | None = None
    """Read mark that the operator writes: at this time, by the service's clock, every channel of this tunnel had been
    read to its end; with a time zone. None: only the service tells what was read."""

    @field_validator("end_time", "read_until", mode="before")
    @classmethod
    def _is_no_number(cls, time: Any) -> Any:
        if isinstance(time, bool | int | float):  # its unit and origin would be guesses
            raise NotAllowed
        return time

    @field_validator("end_time", "read_until")
    @classmethod
    def _has_a_time_zone(cls, time: datetime | None) -> datetime | None:
        if time is not None and time.tzinfo is None:
            raise NotAllowed
        return time


class ClientConfig(ConfigModel):
    """Settings of the worker as a client of the tunnel."""

    tag_prefix: str = ""
    """Prefix of the host name in the client tag; the operator sets the first 8 characters of the object's uid."""
    heartbeat_interval_seconds: Annotated[
        int,
        Field(ge=SHORTEST_INTERVAL),
        Words(because="the service's minimum: it gives channels out with heartbeats, and expects none more often"),
    ] = 10
    """Seconds between heartbeats; the service's minimum is 5."""
    heartbeat_timeout_seconds: Annotated[
        int,
        Field(ge=SHORTEST_INTERVAL + 1),
        Words(because="it has to be more than the heartbeat interval, whose minimum is 5"),
    ] = 60
    """After this time without a heartbeat the service assigns the channels to other clients. More than the interval."""
    checkpoint_interval_seconds: float = Field(default=5, ge=0.1)
    """Shortest time between two checkpoints of a channel."""
    max_parallel_channels: int = Field(default=0, ge=0)
    """Channels read at the same time; 0 means all."""
    lanes_per_channel: int = Field(default=8, ge=1)
    """Parallel writers per channel; records of one key have one writer."""
    memory_budget_bytes: int = Field(default=268_435_456, ge=16_777_216)
    """Bytes of records in this worker's memory, raw and parsed; at the limit reading waits."""
    drain_seconds: float = Field(default=45, ge=1)
    """Longest time for a drain; less than the pod's termination grace period."""
    rate_limit_rows_per_second: int = Field(default=0, ge=0)
    """Rows read per second by this worker; 0 means no limit."""

    @model_validator(mode="after")
    def _timeout_exceeds_interval(self) -> Self:
        if self.heartbeat_timeout_seconds <= self.heartbeat_interval_seconds:
            raise Contradiction(
                "heartbeatTimeoutSeconds",
                f"found {self.heartbeat_timeout_seconds}, allowed is more than heartbeatIntervalSeconds, "
                f"{self.heartbeat_interval_seconds} (the service would forget the client between two heartbeats)",
            )
        return self

    @property
    def write_deadline(self) -> float:
        """D of docs/architecture.md rule 4: seconds that a write may take, and the margin of the fence."""
        return (self.heartbeat_timeout_seconds - self.heartbeat_interval_seconds) / 3
