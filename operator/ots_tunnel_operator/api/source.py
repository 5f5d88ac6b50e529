"""Where records come from: instance, table, tunnel, and who reads (docs/object.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.schema import ApiModel, ObjectName, Time, immutable, rule, rules

TunnelKind = Literal["BaseData", "Stream", "BaseAndStream"]
Endpoint = Annotated[str, Field(max_length=512, pattern=r"^https?://[^/\s]+/?$")]
InstanceName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$")]
TableName = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class SecretReference(ApiModel):
    """A Secret in the object's namespace."""

    name: ObjectName
    """Secret with the keys accessKeyId, accessKeySecret and, for temporary keys, securityToken."""


class Credentials(ApiModel):
    """Who calls the service; exactly one member."""

    model_config = ConfigDict(
        json_schema_extra=rules(rule("has(self.secretRef)", "credentials: exactly one member is needed: secretRef"))
    )

    secret_ref: SecretReference | None = None
    """AccessKey pair in a Secret. A change of its content needs no restart."""


class StreamWindow(ApiModel):
    """Which part of the stream is delivered."""

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
    """Latest: changes from now on. Earliest: all the table still keeps. Timestamp: from startTime on."""
    start_time: Time | None = None
    """First moment, with startFrom Timestamp."""
    end_time: Time | None = None
    """Stop here: the object becomes Completed when every channel has been read up to it."""


class Tunnel(ApiModel):
    """The tunnel on the service."""

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
    """BaseData: the rows that exist. Stream: changes. BaseAndStream: the rows, then the changes. Immutable."""
    management_policy: Literal["CreateIfMissing", "UseExisting"] = "CreateIfMissing"
    """CreateIfMissing: the operator creates the tunnel or adopts an equal one. UseExisting: it must be there."""
    stream: StreamWindow | None = None
    """Part of the stream; absent means from the latest change on, without an end. Immutable."""


class Source(ApiModel):
    """The table that is read."""

    endpoint: Endpoint
    """Instance endpoint without a path, such as https://shop.cn-hangzhou.ots.aliyuncs.com.
    A change rolls the workers."""
    instance: Annotated[InstanceName, Field(json_schema_extra=immutable("source.instance"))]
    """Instance name; immutable."""
    table: Annotated[TableName, Field(json_schema_extra=immutable("source.table"))]
    """Table name; immutable."""
    credentials: Credentials
    """Who reads it."""
    tunnel: Tunnel
    """Tunnel through which it is read."""
