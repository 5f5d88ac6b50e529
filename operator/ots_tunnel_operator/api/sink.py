"""Sinks and delivery settings of an object (docs/object.md). A new sink is a new member of `Sink`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.schema import ApiModel, immutable, rule, rules
from ots_tunnel_operator.api.source import Credentials, Endpoint, InstanceName, TableName


class TablestoreSink(ApiModel):
    """A destination table that is kept equal to the source table."""

    endpoint: Endpoint
    """Endpoint of the destination instance, http(s)://host[:port] without user name, path and query, such as
    https://shop-dr.cn-beijing.ots.aliyuncs.com. A change restarts the workers one by one."""
    instance: Annotated[InstanceName, Field(json_schema_extra=immutable("sink.tablestore.instance"))]
    """Name of the destination instance; immutable."""
    table: Annotated[TableName, Field(json_schema_extra=immutable("sink.tablestore.table"))]
    """Name of the destination table; it must not be the source table itself. Immutable: another table would get only
    what comes later."""
    credentials: Credentials
    """Credentials that may write the destination table."""
    create_table: Literal["IfMissing", "Never"] = "IfMissing"
    """IfMissing: the operator creates a missing table with the source's schema. Never: the table must exist."""
    on_existing: Literal["Refuse", "Merge"] = "Refuse"
    """Refuse: existing rows are copied only into a table that is empty or that this object created. Merge: they are
    copied into any table."""


class StdoutSink(ApiModel):
    """JSON lines on the worker's standard output, for inspection; it has no settings."""


class Sink(ApiModel):
    """Destination of the records; exactly one member is set, and which one is immutable."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "[has(self.tablestore), has(self.stdout)].filter(given, given).size() == 1",
                "sink: exactly one member is needed: tablestore or stdout",
            ),
            rule(
                "has(self.tablestore) == has(oldSelf.tablestore)",
                "sink is immutable in kind because another sink would get only what comes later: "
                "create another object with another tunnel.name instead",
                found="'it is ' + (has(oldSelf.tablestore) ? 'tablestore' : 'stdout') + ', found ' + "
                "(has(self.tablestore) ? 'tablestore' : 'stdout')",
            ),
        )
    )

    tablestore: TablestoreSink | None = None
    """A destination table."""
    stdout: StdoutSink | None = None
    """The standard output of the workers, one JSON line per record; `stdout: {}` selects it."""


class Retry(ApiModel):
    """Pauses between two attempts at a failed write; a retryable failure is retried without limit."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.backoffMaxSeconds >= self.backoffSeconds",
                "retry.backoffMaxSeconds must not be less than retry.backoffSeconds",
                field=".backoffMaxSeconds",
            )
        )
    )

    backoff_seconds: Annotated[int, Field(ge=1, le=3600)] = 1
    """First pause in seconds; it doubles with every further attempt."""
    backoff_max_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    """Longest pause in seconds; at least backoffSeconds."""


class Delivery(ApiModel):
    """Size of the writes to the sink, and the treatment of failed ones."""

    batch_max_rows: Annotated[int, Field(ge=1, le=200)] = 200
    """Most rows in one write; the service accepts 200."""
    batch_max_bytes: Annotated[int, Field(ge=1024, le=4_194_304)] = 4_000_000
    """Most bytes in one write; the service accepts 4194304."""
    retry: Retry = Retry()
    """Pauses between two attempts at a failed write."""
    on_permanent_error: Literal["Fail"] = "Fail"
    """Treatment of a record that the sink refuses permanently. Fail: the worker ends before it and is
    restarted; no record is dropped."""
