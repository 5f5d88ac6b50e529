"""Source of a worker, and its settings as a client of the tunnel."""

from __future__ import annotations

from typing import Annotated, Self

from ots_tunnel.config.base import ZonedTime
from ots_tunnel.config.modelling import Field, model_validator
from ots_tunnel.config.problems import Contradiction
from ots_tunnel.config.words import Words
from ots_tunnel.config.worker_document import PaceConfig, SourceConfig

#: Seconds, the service's minimum (docs/protocol.md 5.5).
SHORTEST_INTERVAL = 5


class TunnelConfig(SourceConfig):
    """The tunnel to consume."""

    tunnel_name: Annotated[str, Field(pattern=r"^\S+$"), Words("a name without spaces")]
    """Tunnel name, for messages and metrics."""
    tunnel_id: Annotated[
        str, Field(pattern=r"^\S+$"), Words("the id that `ots-tunnel tunnel create` or `list` shows, without spaces")
    ]
    """Tunnel id; a worker never creates a tunnel."""
    end_time: ZonedTime | None = None
    """The worker stops at this time and writes no later records; with a time zone. None: it never stops."""
    read_until: ZonedTime | None = None
    """Read mark that the operator writes: at this time, by the service's clock, every channel of this tunnel had been
    read to its end; with a time zone. None: only the service tells what was read."""


class ClientConfig(PaceConfig):
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
