"""Fields of an object that cannot change: a first spec, the change, and its refusal."""

from __future__ import annotations

from typing import Any

from tests.support.operator.objects import tunnel_object
from tests.support.operator.query_worlds import BY_QUERY
from tests.support.operator.spec_blocks import (
    END,
    FILES,
    KAFKA,
    LAKE,
    LEASED,
    PARQUET,
    PRICE,
    SPARK,
    STDOUT,
    STREAM,
    TYPED,
)

#: Immutable fields: the change, and the field and text of the refusal.
IMMUTABLE: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "instance": ({}, {"source__instance": "other"}, "spec.source.instance", "source.instance is immutable"),
    "table": ({}, {"source__table": "other"}, "spec.source.table", "source.table is immutable"),
    "tunnel name": ({}, {"source__tunnel__name": "other"}, "spec.source.tunnel.name", "tunnel.name is immutable"),
    "tunnel type": ({}, {"source__tunnel__type": "Stream"}, "spec.source.tunnel.type", "tunnel.type is immutable"),
    "engine": ({}, SPARK, "spec.engine", "engine is immutable"),
    "engine of changes": (STREAM | FILES, BY_QUERY, "spec.engine", "engine is immutable"),
    "columns of a query": (
        BY_QUERY | {"sink": {"files": LAKE | {"columns": [PRICE]}}},
        {"sink": {"files": LAKE | {"columns": [PRICE, {"name": "customer", "type": "string"}]}}},
        "spec.sink.files.columns",
        "sink.files.columns cannot be changed with engine.stream Spark",
    ),
    "place of checkpoints": (
        BY_QUERY,
        {"spark": BY_QUERY["spark"] | {"checkpoint": {"claimName": "others"}}},
        "spec.spark.checkpoint.claimName",
        "spark.checkpoint.claimName is immutable",
    ),
    "instance of the destination": (
        {},
        {"sink__tablestore__instance": "other"},
        "spec.sink.tablestore.instance",
        "sink.tablestore.instance is immutable",
    ),
    "table of the destination": (
        {},
        {"sink__tablestore__table": "other"},
        "spec.sink.tablestore.table",
        "sink.tablestore.table is immutable",
    ),
    "bucket": (
        FILES,
        {"sink__files__url": "s3://other/orders"},
        "spec.sink.files.url",
        "sink.files.url is immutable",
    ),
    "prefix": (FILES, {"sink__files__url": "s3://shop/other"}, "spec.sink.files.url", "sink.files.url is immutable"),
    "format": (FILES, {"sink__files__format": "Parquet"}, "spec.sink.files.format", "sink.files.format is immutable"),
    "mode": (
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Delta", "mode": "Mirror"}}},
        {"sink__files__mode": "ChangeLog"},
        "spec.sink.files.mode",
        "sink.files.mode is immutable",
    ),
    "columns that appear": (
        {"sink": {"files": PARQUET}},
        {"sink__files__columns": [PRICE]},
        "spec.sink.files.columns",
        "sink.files.columns cannot be added or left out later",
    ),
    "columns that go": (
        {"sink": {"files": TYPED}},
        {"sink__files__columns": None},
        "spec.sink.files.columns",
        "sink.files.columns cannot be added or left out later",
    ),
    "the type of a column": (
        {"sink": {"files": TYPED}},
        {"sink__files__columns": [{"name": "n", "type": "integer"}, PRICE | {"type": "string"}]},
        "spec.sink.files.columns[1].type",
        "sink.files.columns[].type is immutable",
    ),
    "topic": (
        {"sink": {"kafka": KAFKA}},
        {"sink__kafka__topic": "other"},
        "spec.sink.kafka.topic",
        "sink.kafka.topic is immutable",
    ),
    "a table that becomes another sink": ({}, STDOUT, "spec.sink", "sink is immutable in kind"),
    "another sink that becomes a table": (
        STDOUT,
        {"sink": tunnel_object()["spec"]["sink"]},
        "spec.sink",
        "sink is immutable in kind",
    ),
    "a tunnel that becomes leases": (
        {},
        LEASED,
        "spec.source",
        "source.tunnel and source.stream cannot replace each other",
    ),
    "leases that become a tunnel": (
        LEASED,
        {"source__stream": None, "source__tunnel": {"name": "flights-copy", "type": "Stream"}},
        "spec.source",
        "source.tunnel and source.stream cannot replace each other",
    ),
    "table of leases": (
        LEASED,
        {"source__stream__leaseTable": "others"},
        "spec.source.stream.leaseTable",
        "source.stream.leaseTable is immutable",
    ),
    "start of leases": (
        LEASED,
        {"source__stream__startFrom": "Latest"},
        "spec.source.stream.startFrom",
        "source.stream.startFrom and source.stream.startTime are immutable",
    ),
    "an end of the stream that appears": (
        LEASED,
        {"source__stream__endTime": END},
        "spec.source.stream.endTime",
        "source.stream.endTime is immutable, because an object that is Completed stays so",
    ),
    "a stream block that appears": (
        {},
        {"source__tunnel__stream": {"endTime": END}},
        "spec.source.tunnel.stream",
        "tunnel.stream is immutable",
    ),
    "a stream block that changes": (
        STREAM | {"source__tunnel__stream": {"startFrom": "Earliest"}},
        {"source__tunnel__stream": {"startFrom": "Latest"}},
        "spec.source.tunnel.stream",
        "tunnel.stream is immutable",
    ),
    "a stream block that goes": (
        STREAM | {"source__tunnel__stream": {"startFrom": "Earliest"}},
        {"source__tunnel__stream": None},
        "spec.source.tunnel.stream",
        "tunnel.stream is immutable",
    ),
}
