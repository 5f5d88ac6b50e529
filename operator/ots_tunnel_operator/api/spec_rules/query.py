"""What a query of Spark needs that follows changes, and what it cannot do."""

from __future__ import annotations

from typing import Final

from pydantic.alias_generators import to_camel

from ots_tunnel_operator.api.delivery import Delivery, Retry
from ots_tunnel_operator.api.files import IS_TABLE, TABLES, FilesSink
from ots_tunnel_operator.api.schema import ApiModel, rule
from ots_tunnel_operator.api.sink import sink_kind
from ots_tunnel_operator.api.spec_rules.engines import BY_QUERY


def _left_out(path: str, block: type[ApiModel], *fields: str) -> str:
    """CEL that is true where fields have their defaults, which the API server fills in where they are left out."""
    values = {field: block.model_fields[field].default for field in fields}
    return " && ".join(
        f"{path}.{to_camel(field)} == " + (f"'{value}'" if isinstance(value, str) else f"{value}")
        for field, value in values.items()
    )


QUERY_RULES: Final = (
    rule(
        f"!({BY_QUERY}) || has(self.source.tunnel) && self.source.tunnel.type != 'BaseData'",
        "engine.stream Spark is only for source.tunnel of type Stream or BaseAndStream: leave it out",
        field=".engine.stream",
        found="(has(self.source.tunnel) ? 'found type ' + self.source.tunnel.type : 'found source.stream')",
    ),
    rule(
        f"!({BY_QUERY}) || !has(self.source.tunnel) || self.source.tunnel.type != 'BaseAndStream' || "
        "self.engine.baseData == 'Spark'",
        "engine.baseData must be Spark with engine.stream Spark and tunnel.type BaseAndStream: one query brings "
        "existing rows and changes",
        field=".engine.baseData",
        found="'found ' + self.engine.baseData",
    ),
    rule(
        f"!({BY_QUERY}) || has(self.sink.files)",
        "sink.files is the only sink that engine.stream Spark writes",
        field=".sink",
        found=f"'found ' + {sink_kind('self.sink')}",
    ),
    rule(
        f"!({BY_QUERY}) || !has(self.sink.files) || self.sink.files.url.startsWith('file:') || "
        "self.sink.files.format == 'Delta'",
        "files.url must be file:///path with engine.stream Spark and another files.format than Delta, a folder on a "
        "volume that spark.driver.podTemplate and spark.executor.podTemplate mount; for a bucket take files.format "
        "Delta",
        field=".sink.files.url",
        found="'found ' + self.sink.files.url",
    ),
    rule(
        f"!({BY_QUERY}) || !has(self.sink.files) || !has(self.sink.files.caRef)",
        "files.caRef is not for engine.stream Spark, whose Java trusts the authorities of spark.image: leave it out",
        field=".sink.files.caRef",
    ),
    rule(
        f"{BY_QUERY} || !has(self.sink.files) || !(self.sink.files.{IS_TABLE})",
        f"files.format {' and '.join(TABLES)} are only for engine.stream Spark: take Parquet, or let Spark follow the "
        "tunnel",
        field=".sink.files.format",
        found="'found format ' + self.sink.files.format + ' with engine.stream ' + self.engine.stream",
    ),
    rule(
        f"!({BY_QUERY}) || !has(self.sink.files) || "
        "(!has(self.sink.files.unknownColumns) || self.sink.files.unknownColumns == 'Map' || "
        f"self.sink.files.{IS_TABLE}) && "
        + _left_out("self.sink.files", FilesSink, "max_file_bytes", "max_file_seconds"),
        "files.unknownColumns Error without files.format Delta or Iceberg, files.maxFileBytes and files.maxFileSeconds "
        "are not for engine.stream Spark, whose files follow from spark.triggerIntervalSeconds: leave them out",
        field=".sink.files",
    ),
    rule(
        f"!({BY_QUERY}) || !has(self.sink.files) || self.sink.files.format != 'JsonLines' || "
        "self.sink.files.compression != 'zstd'",
        "files.compression zstd is only for files.format Parquet, Delta and Iceberg with engine.stream Spark",
        field=".sink.files.compression",
        found="'found format ' + self.sink.files.format",
    ),
    rule(
        f"!({BY_QUERY}) || !has(self.sink.files) || !has(self.sink.files.columns) || "
        "!has(oldSelf.sink.files) || !has(oldSelf.sink.files.columns) || "
        "self.sink.files.columns == oldSelf.sink.files.columns",
        "sink.files.columns cannot be changed with engine.stream Spark: create another object instead",
        field=".sink.files.columns",
    ),
    rule(
        f"!({BY_QUERY}) || !has(self.source.tunnel) || !has(self.source.tunnel.stream) || "
        "!has(self.source.tunnel.stream.endTime)",
        "tunnel.stream.endTime is not for engine.stream Spark, whose query has no end: leave it out",
        field=".source.tunnel.stream.endTime",
    ),
    rule(
        f"!({BY_QUERY}) || !has(self.source.rateLimit) && !has(self.delivery.rateLimit) && "
        "!has(self.delivery.columns) && !has(self.delivery.filter) && "
        + _left_out("self.delivery", Delivery, "on_permanent_error", "batch_max_rows", "batch_max_bytes")
        + " && "
        + _left_out("self.delivery.retry", Retry, "backoff_seconds", "backoff_max_seconds"),
        "delivery and source.rateLimit are not for engine.stream Spark, which delivers every change as it is: "
        "leave them out",
        field=".delivery",
    ),
    rule(
        f"!({BY_QUERY}) || self.replicas == 1",
        "replicas is the number of workers, and engine.stream Spark has none: leave it out; suspend stops the "
        "query, and spark.executor.instances is its size",
        field=".replicas",
    ),
    rule(
        f"({BY_QUERY}) == (has(self.spark) && has(self.spark.checkpoint))",
        "spark.checkpoint is needed with engine.stream Spark and only with it",
        field=".spark.checkpoint",
    ),
    rule(
        f"{BY_QUERY} || !has(self.spark) || !has(self.spark.triggerIntervalSeconds)",
        "spark.triggerIntervalSeconds is only for engine.stream Spark",
        field=".spark.triggerIntervalSeconds",
    ),
)
