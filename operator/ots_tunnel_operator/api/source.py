"""Source of an object: instance, table, tunnel and credentials (docs/object.md)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, ConfigDict, Field, ValidatorFunctionWrapHandler, WrapValidator

from ots_tunnel.endpoint import ENDPOINT, ENDPOINT_WORDS, MAX_ENDPOINT, is_endpoint
from ots_tunnel_operator.api.schema import ApiModel, ObjectName, Time, cel_text, immutable, rule, rules

TunnelKind = Literal["BaseData", "Stream", "BaseAndStream"]


def _endpoint(text: str) -> str:
    if not is_endpoint(text):
        raise ValueError(f"allowed is {ENDPOINT_WORDS}")
    return text


#: The last second that the service can count, in nanoseconds since 1970 of 64 bits: no change is ever later.
LATEST = datetime(2262, 4, 11, 23, 47, 16, tzinfo=UTC)
_REST = r"-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#: A date, a time of day and a zone. A start of 1970 would be 0 on the wire, which means unset. The format date-time of
#: the API server alone admits what the model cannot read.
START = f"(197[1-9]|19[89][0-9]|2[01][0-9]{{2}}){_REST}"
START_WORDS = "a time such as 2026-01-31T12:00:00Z in the years 1971 to 2199"
#: What the API server takes as an end. The field is immutable, so the model reads what once was taken, too: any year,
#: also 9999 for "never", and letters of lower case.
END = f"(197[1-9]|19[89][0-9]|[2-9][0-9]{{3}}){_REST}"
#: The first moment that the service can tell from no end.
EARLIEST = datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)


def _start(value: object, read: ValidatorFunctionWrapHandler) -> datetime:
    """The start; decimals beyond microseconds are cut off: a little earlier, so that no change is left out."""
    if isinstance(value, str) and not re.fullmatch(START, value, re.IGNORECASE):
        raise ValueError(f"allowed is {START_WORDS}")
    return cast(datetime, read(value))


def _end(value: object, read: ValidatorFunctionWrapHandler) -> datetime:
    """The end; decimals beyond microseconds are rounded up: a little later, so that no change is left out."""
    moment = max(EARLIEST, min(cast(datetime, read(value)), LATEST))
    has_more = isinstance(value, str) and re.search(r"[.][0-9]{6}0*[1-9]", value)
    return moment + timedelta(microseconds=1) if has_more and moment < LATEST else moment


#: Points of a stream.
StartTime = Annotated[Time, WrapValidator(_start), Field(json_schema_extra={"pattern": f"^{START}$"})]
EndTime = Annotated[Time, WrapValidator(_end), Field(json_schema_extra={"pattern": f"^{END}$"})]

#: The API server and the model check one expression; the message does not repeat a password.
Endpoint = Annotated[
    str,
    AfterValidator(_endpoint),
    Field(
        max_length=MAX_ENDPOINT,
        json_schema_extra=rules(
            {
                "rule": f"self.matches('{cel_text(ENDPOINT)}')",
                "message": f"endpoint: allowed is {ENDPOINT_WORDS}",
                "messageExpression": (
                    "'endpoint: found ' + (self.contains('@') ? 'a user name or password' : '\\'' + self + '\\'') + "
                    f"', allowed is {ENDPOINT_WORDS}'"
                ),
            }
        ),
    ),
]
InstanceName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$")]
TableName = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class SecretReference(ApiModel):
    """Reference to a Secret in the object's namespace."""

    name: ObjectName
    """Name of the Secret. Its keys are accessKeyId, accessKeySecret and, for temporary credentials, securityToken."""


#: Key of a Secret.
KeyName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")]


class SecretKey(ApiModel):
    """One key of a Secret in the object's namespace."""

    name: ObjectName
    """Name of the Secret."""
    key: KeyName
    """Key of the Secret."""


class Credentials(ApiModel):
    """Credentials for calls to the service; exactly one member is set."""

    model_config = ConfigDict(
        json_schema_extra=rules(rule("has(self.secretRef)", "credentials: exactly one member is needed: secretRef"))
    )

    secret_ref: SecretReference | None = None
    """Secret with an AccessKey pair; workers read a changed Secret without a restart."""


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


class RateLimit(ApiModel):
    """A limit of the rate of each worker, kept by waiting.

    A worker knows nothing of the others, and autoscaling adds workers by what one of them can do. So the limit is that
    of one worker, and its name says so; the object's follows from the number of workers.
    """

    rows_per_second_per_worker: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0
    """Rows per second of each worker, not of the whole object, which has as many times this as it has workers
    (replicas, or up to autoscaling.maxReplicas); status.throughput.limitRowsPerSecond has the product. 0 means no
    limit."""


class Source(ApiModel):
    """The source table and the tunnel through which it is read."""

    endpoint: Endpoint
    """Endpoint of the source instance, http(s)://host[:port] without user name, path and query, such as
    https://shop.cn-hangzhou.ots.aliyuncs.com. A change restarts the workers one by one."""
    instance: Annotated[InstanceName, Field(json_schema_extra=immutable("source.instance"))]
    """Name of the source instance; immutable."""
    table: Annotated[TableName, Field(json_schema_extra=immutable("source.table"))]
    """Name of the source table; immutable."""
    credentials: Credentials
    """Credentials that may read the table and use its tunnels."""
    tunnel: Tunnel
    """Tunnel through which the table is read."""
    rate_limit: RateLimit | None = None
    """Limit of each worker's reads; absent means none. With more workers, the object reads more."""
