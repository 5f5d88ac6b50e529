"""The tunnel of an object, and the part of the stream that it delivers (docs/object.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.moments import EndTime, StartTime
from ots_tunnel_operator.api.schema import ApiModel, immutable, rule, rules

TunnelKind = Literal["BaseData", "Stream", "BaseAndStream"]


class StreamWindow(ApiModel):
    """The part of the stream that is delivered."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "(self.startFrom == 'Timestamp') == has(self.startTime)",
                "stream.startTime is needed with stream.startFrom Timestamp and only with it",
                field=".startTime",
            ),
            rule(
                "!has(self.endTime) || !has(self.startTime) || self.endTime > self.startTime",
                "stream.endTime must be after stream.startTime",
                field=".endTime",
            ),
        )
    )

    start_from: Literal["Latest", "Earliest", "Timestamp"] = "Latest"
    """Latest: changes after the tunnel's creation. Earliest: every change that the table still keeps. Timestamp:
    changes from startTime on."""
    start_time: StartTime | None = None
    """Time of the first change to deliver, such as 2026-01-31T12:00:00Z, in the years 1971 to 2199; required with
    startFrom Timestamp, refused otherwise."""
    end_time: EndTime | None = None
    """Time of the last change to deliver, such as 2026-01-31T12:00:00Z, from the year 1971 on; the object becomes
    Completed when every channel has been read up to it. Absent means without end."""


class Tunnel(ApiModel):
    """The tunnel on the service through which the table is read."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.type != 'BaseData' || !has(self.stream)",
                "tunnel.stream has no meaning with tunnel.type BaseData: leave it out",
                field=".stream",
            ),
            rule(
                "self.type != 'BaseAndStream' || !has(self.stream) || self.stream.startFrom == 'Latest'",
                "tunnel.stream.startFrom must be Latest with tunnel.type BaseAndStream",
                field=".stream.startFrom",
                found="'found ' + self.stream.startFrom",
            ),
            # on the parent, so that adding or removing the block is caught too
            rule(
                "has(self.stream) == has(oldSelf.stream) && (!has(self.stream) || self.stream == oldSelf.stream)",
                "tunnel.stream is immutable because the service takes it only when it creates the tunnel: "
                "create another object with another tunnel.name instead",
                field=".stream",
            ),
        )
    )

    name: Annotated[
        str,
        Field(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9_.-]+$", json_schema_extra=immutable("tunnel.name")),
    ]
    """Name of the tunnel, unique per table; immutable."""
    type: Annotated[TunnelKind, Field(json_schema_extra=immutable("tunnel.type"))]
    """Records to deliver. BaseData: existing rows. Stream: changes. BaseAndStream: existing rows, then changes.
    Immutable."""
    management_policy: Literal["CreateIfMissing", "UseExisting"] = "CreateIfMissing"
    """CreateIfMissing: the operator creates the tunnel, or adopts an existing one with the same settings. UseExisting:
    the tunnel must exist."""
    stream: StreamWindow | None = None
    """Part of the stream to deliver; absent means changes after the tunnel's creation, without end. Immutable."""
    on_possible_gap: Literal["Stop", "Continue"] = "Stop"
    """What the workers do where changes may be missing because they were not read within the stream's retention. Stop:
    they read nothing more. Continue: they warn and go on. Only a copy from the beginning brings the missing changes
    back."""
