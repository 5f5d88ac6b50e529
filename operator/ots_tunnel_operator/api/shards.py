"""A source without a tunnel: the table's stream, whose shards the workers share by leases (docs/stream.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.moments import EndTime, StartTime
from ots_tunnel_operator.api.schema import ApiModel, TableName, immutable, rule, rules


class LeasedStream(ApiModel):
    """The stream of the table, read without a tunnel: workers share its shards through a table of leases."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "(self.startFrom == 'Timestamp') == has(self.startTime)",
                "source.stream.startTime is needed with source.stream.startFrom Timestamp and only with it",
                field=".startTime",
                found="'found startFrom ' + self.startFrom",
            ),
            rule(
                "!has(self.endTime) || !has(self.startTime) || self.endTime > self.startTime",
                "source.stream.endTime must be after source.stream.startTime",
                field=".endTime",
            ),
            # on the parent, so that adding or removing the time is caught too
            rule(
                "self.startFrom == oldSelf.startFrom && has(self.startTime) == has(oldSelf.startTime) && "
                "(!has(self.startTime) || self.startTime == oldSelf.startTime)",
                "source.stream.startFrom and source.stream.startTime are immutable, because they became the first "
                "checkpoints of the leases: create another object with another source.stream.leaseTable instead",
                field=".startFrom",
            ),
            rule(
                "has(self.endTime) == has(oldSelf.endTime) && (!has(self.endTime) || self.endTime == oldSelf.endTime)",
                "source.stream.endTime is immutable, because an object that is Completed stays so: delete it, and "
                "create another one with the same source.stream.leaseTable, which reads on",
                field=".endTime",
            ),
        )
    )

    lease_table: Annotated[TableName, Field(json_schema_extra=immutable("source.stream.leaseTable"))]
    """Table of leases in the source instance, one row for each shard: who reads it, and how far. The first worker
    creates it where it is missing, and no deletion of the object deletes it. Workers of the vendor's Java library may
    share it, nothing else may use it. Immutable."""
    start_from: Literal["Earliest", "Latest", "Timestamp"] = "Earliest"
    """Where reading begins if the stream has no lease yet. Earliest: with the oldest change that the table still keeps.
    Latest: when this object was created. Timestamp: at startTime. Immutable."""
    start_time: StartTime | None = None
    """Time at which reading begins, such as 2026-01-31T12:00:00Z, in the years 1971 to 2199; required with startFrom
    Timestamp, refused otherwise. Immutable."""
    end_time: EndTime | None = None
    """Time of the last change to deliver, such as 2026-01-31T12:00:00Z, from the year 1971 on; the object becomes
    Completed when every shard has been read up to it. Absent means without end. Immutable."""
    on_possible_gap: Literal["Stop", "Continue"] = "Stop"
    """What the workers do where changes may be missing because they were not read within the stream's retention. Stop:
    they read nothing more. Continue: they warn and go on. Only a copy from the beginning brings the missing changes
    back."""
