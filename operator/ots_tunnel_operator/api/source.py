"""Source of an object: instance, table and credentials, and the tunnel or stream (docs/object.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from ots_tunnel.endpoint import ENDPOINT, ENDPOINT_WORDS, MAX_ENDPOINT, is_endpoint
from ots_tunnel_operator.api.schema import ApiModel, ObjectName, TableName, cel_text, immutable, rule, rules
from ots_tunnel_operator.api.shards import LeasedStream
from ots_tunnel_operator.api.tunnel import StreamWindow, Tunnel, TunnelKind


def _endpoint(text: str) -> str:
    if not is_endpoint(text):
        raise ValueError(f"allowed is {ENDPOINT_WORDS}")
    return text


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


class CertificateKey(SecretKey):
    """One key of a Secret in the object's namespace, with certificates."""

    key: KeyName = "ca.crt"
    """Key of the Secret; its value holds certificates in PEM form."""


class Credentials(ApiModel):
    """Credentials for calls to the service; exactly one member is set."""

    model_config = ConfigDict(
        json_schema_extra=rules(rule("has(self.secretRef)", "credentials: exactly one member is needed: secretRef"))
    )

    secret_ref: SecretReference | None = None
    """Secret with an AccessKey pair; workers read a changed Secret without a restart."""


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
    """The source table, and the tunnel or the stream by which it is read."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.tunnel) != has(self.stream)",
                "source: exactly one member is needed: tunnel or stream",
                found="(has(self.tunnel) ? 'found both' : 'found none of them')",
            ),
            rule(
                "has(self.tunnel) == has(oldSelf.tunnel) && has(self.stream) == has(oldSelf.stream)",
                "source.tunnel and source.stream cannot replace each other, because neither tells how far the "
                "other was read: create another object instead",
                found="(has(oldSelf.tunnel) ? 'it is tunnel' : 'it is stream')",
            ),
            rule(
                "!has(self.stream) || self.stream.leaseTable != self.table",
                "source.stream.leaseTable must not be source.table: nothing else may use a table of leases",
                field=".stream.leaseTable",
            ),
        )
    )

    endpoint: Endpoint
    """Endpoint of the source instance, http(s)://host[:port] without user name, path and query, such as
    https://shop.cn-hangzhou.ots.aliyuncs.com. A change restarts the workers one by one."""
    instance: Annotated[InstanceName, Field(json_schema_extra=immutable("source.instance"))]
    """Name of the source instance; immutable."""
    table: Annotated[TableName, Field(json_schema_extra=immutable("source.table"))]
    """Name of the source table; immutable."""
    credentials: Credentials
    """Credentials that may read the table and use its tunnels; with stream, also create and write the table of
    leases."""
    tunnel: Tunnel | None = None
    """Tunnel through which the table is read; exactly one of tunnel and stream is given."""
    stream: LeasedStream | None = None
    """In place of a tunnel, the table's stream: changes alone, read by workers that share its shards through a table of
    leases."""
    rate_limit: RateLimit | None = None
    """Limit of each worker's reads; absent means none. With more workers, the object reads more."""

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.tunnel is None) == (self.stream is None):
            found = "none of them" if self.tunnel is None else "both"
            raise ValueError(f"found {found}, allowed is exactly one of tunnel and stream")
        return self

    @property
    def kind(self) -> TunnelKind:
        """Which records are read; a stream has changes alone."""
        return "Stream" if self.tunnel is None else self.tunnel.type

    @property
    def read_through(self) -> str:
        """Name of the tunnel, or of the table of leases in its place."""
        return self.a_tunnel.name if self.stream is None else self.stream.lease_table

    @property
    def words(self) -> str:
        """The tunnel, or the table of leases in its place, in words."""
        return f"{'tunnel' if self.stream is None else 'table of leases'} {self.read_through!r}"

    @property
    def field(self) -> str:
        """What messages call the tunnel, or the table of leases: the field and its value."""
        name = "spec.source.stream.leaseTable" if self.tunnel is None else "spec.source.tunnel.name"
        return f"{name} {self.read_through!r}"

    @property
    def a_tunnel(self) -> Tunnel:
        """The tunnel.

        Raises:
            LookupError: the source has none; the caller has to ask first.
        """
        if self.tunnel is None:
            raise LookupError("spec.source.tunnel: found none, the object reads a stream")
        return self.tunnel

    @property
    def window(self) -> StreamWindow | None:
        """The part of the stream that the tunnel delivers; None is all of it, and that of a stream without a tunnel."""
        return None if self.tunnel is None else self.tunnel.stream

    @property
    def whole(self) -> str:
        """What messages call that which is read: the tunnel, or the stream without one."""
        return "tunnel" if self.stream is None else "stream"

    @property
    def part(self) -> str:
        """What messages call a part of the source that one worker reads at a time."""
        return "channel" if self.stream is None else "shard"

    @property
    def end_time(self) -> datetime | None:
        """Time of the last change to deliver; None is without end."""
        if self.stream is not None:
            return self.stream.end_time
        return None if self.window is None else self.window.end_time

    @property
    def gap_field(self) -> str:
        """The field that decides about possible gaps."""
        return f"spec.source.{'stream' if self.tunnel is None else 'tunnel'}.onPossibleGap"

    @property
    def goes_on_behind_gaps(self) -> bool:
        """Whether that field is Continue."""
        decides = self.tunnel or self.stream
        return decides is not None and decides.on_possible_gap == "Continue"
