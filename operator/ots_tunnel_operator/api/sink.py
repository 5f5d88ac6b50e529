"""Where records go and how (docs/object.md). Another sink is another member of `Sink`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.schema import ApiModel, rule, rules
from ots_tunnel_operator.api.source import Credentials, Endpoint, InstanceName, TableName


class TablestoreSink(ApiModel):
    """Another table, kept equal."""

    endpoint: Endpoint
    """Instance endpoint without a path, such as https://shop-dr.cn-beijing.ots.aliyuncs.com."""
    instance: InstanceName
    """Instance name."""
    table: TableName
    """Table name."""
    credentials: Credentials
    """Who writes it."""
    create_table: Literal["IfMissing", "Never"] = "IfMissing"
    """IfMissing: the operator creates the table after the source's schema. Never: it must be there."""
    on_existing: Literal["Refuse", "Merge"] = "Refuse"
    """Refuse: base rows go only into a table that is empty or that this object created. Merge: into any."""


class StdoutSink(ApiModel):
    """JSON lines in the log of the worker, for looking."""


class Sink(ApiModel):
    """Where records go; exactly one member."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "[has(self.tablestore), has(self.stdout)].filter(given, given).size() == 1",
                "sink: exactly one member is needed: tablestore or stdout",
            )
        )
    )

    tablestore: TablestoreSink | None = None
    """Another table."""
    stdout: StdoutSink | None = None
    """The worker's log."""


class Retry(ApiModel):
    """Pauses between tries of a failed write; tries never end."""

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
    """First pause in seconds; doubles."""
    backoff_max_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    """Longest pause in seconds."""


class Delivery(ApiModel):
    """How records are grouped and what happens to refused ones."""

    batch_max_rows: Annotated[int, Field(ge=1, le=200)] = 200
    """Rows per write; the service's maximum is 200."""
    batch_max_bytes: Annotated[int, Field(ge=1024, le=4_194_304)] = 4_000_000
    """Bytes per write; the service's maximum is 4194304."""
    retry: Retry = Retry()
    """Pauses between tries."""
    on_permanent_error: Literal["Fail"] = "Fail"
    """What happens to a record the sink refuses for good. Fail stops its channel; nothing is dropped."""
