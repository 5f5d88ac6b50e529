"""Sinks of an object (docs/object.md). A new sink is a new member of `Sink`, and its name in `SINKS`."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.files import FilesSink
from ots_tunnel_operator.api.kafka import KafkaSink
from ots_tunnel_operator.api.schema import ApiModel, TableName, immutable, rule, rules
from ots_tunnel_operator.api.source import Credentials, Endpoint, InstanceName
from ots_tunnel_operator.api.webhook import HttpSink


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


class PythonSink(ApiModel):
    """The user's own Python code."""

    factory: Annotated[
        str, Field(min_length=3, max_length=512, pattern=r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$")
    ]
    """package.module:name of a processor factory, or of a function without arguments that returns one. The package is
    in an image of your own, workers.image, or on a volume of workers.podTemplate that PYTHONPATH names."""


class StdoutSink(ApiModel):
    """JSON lines on the worker's standard output, for inspection; it has no settings."""


#: Members of `Sink`, in the order in which messages name them.
SINKS: Final = ("tablestore", "files", "kafka", "http", "python", "stdout")


def listed(names: tuple[str, ...]) -> str:
    """Names in a sentence: `a, b or c`."""
    return f"{', '.join(names[:-1])} or {names[-1]}"


def sink_kind(sink: str) -> str:
    """CEL expression of the name of the member that a sink has, such as of `self`."""
    cases = "".join(f"has({sink}.{name}) ? '{name}' : " for name in SINKS[:-1])
    return f"({cases}'{SINKS[-1]}')"


class Sink(ApiModel):
    """Destination of the records; exactly one member is set, and which one is immutable."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                f"[{', '.join(f'has(self.{name})' for name in SINKS)}].filter(given, given).size() == 1",
                f"sink: exactly one member is needed: {listed(SINKS)}",
            ),
            rule(
                " && ".join(f"has(self.{name}) == has(oldSelf.{name})" for name in SINKS),
                "sink is immutable in kind because another sink would get only what comes later: "
                "create another object with another tunnel.name instead",
                found=f"'it is ' + {sink_kind('oldSelf')} + ', found ' + {sink_kind('self')}",
            ),
        )
    )

    tablestore: TablestoreSink | None = None
    """A destination table."""
    files: FilesSink | None = None
    """Files of changes in a bucket or on a volume."""
    kafka: KafkaSink | None = None
    """An existing Kafka topic."""
    http: HttpSink | None = None
    """A web service that accepts batches of CloudEvents."""
    python: PythonSink | None = None
    """Your own Python code."""
    stdout: StdoutSink | None = None
    """The standard output of the workers, one JSON line per record; `stdout: {}` selects it."""

    @property
    def holds_seconds(self) -> int:
        """Seconds for which the sink holds records before it stores them: nothing of them is confirmed before."""
        return 0 if self.files is None else self.files.max_file_seconds
