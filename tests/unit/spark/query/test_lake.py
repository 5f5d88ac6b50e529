"""What a document about a Delta table makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException

from ots_tunnel.errors import QueryRefused, SinkError
from ots_tunnel.query.document import QueryConfig
from ots_tunnel.spark.lake.tables.delta import DeltaTable
from ots_tunnel.spark.lake.tables.places import Delta
from ots_tunnel.spark.query import lake, start
from tests.support.documents.query_document import QUERY

SESSION = {"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"}


class Settings(dict[str, str]):
    """The settings of a session."""

    def set(self, key: str, value: str) -> None:
        self[key] = value


class Spark:
    """A classic session, which notes how a stream is started."""

    def __init__(self, **settings: str) -> None:
        self.conf = Settings(settings)
        self.sparkContext = self
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.readStream = self

    def __getattr__(self, name: str) -> Any:
        if name in ("writeStream", "writer"):
            return self

        def call(*args: Any, **more: Any) -> Any:
            self.calls.append((name, args, more))
            return self

        return call


class Mirror:
    """Stands for `lake.Mirror`, which needs a real session."""

    made: Mirror

    def __init__(self, spark: Any, source: Any, place: Any, **given: Any) -> None:
        self.source, self.path, self.given = dict(source), place.path, given
        self.steps: list[Any] = []
        Mirror.made = self

    def prepare(self) -> None:
        self.steps.append("prepared")

    def start(self, checkpoint: str, **trigger: Any) -> Any:
        self.steps.append((checkpoint, trigger))
        return self


def config(**files: Any) -> QueryConfig:
    return QueryConfig.model_validate({**QUERY, "sink": {"files": {"url": "file:///lake/a%20b", **files}}})


def started(monkeypatch: pytest.MonkeyPatch, spark: Spark, **files: Any) -> Any:
    monkeypatch.setattr(lake, "Mirror", Mirror)
    monkeypatch.setattr(lake, "check_age", lambda table, checkpoint: table.spark.check_age(table.path, checkpoint))
    monkeypatch.setattr("ots_tunnel.spark.sessions.context_of", lambda spark: spark)
    wanted = config(format="Delta", **files)
    return lake.start_lake(wanted, spark, start.source_options(wanted))  # type: ignore[arg-type]  # a session played


def test_a_mirror_has_the_existing_rows_before_it_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [{"name": "price", "type": "double"}]
    spark = Spark(**SESSION)

    made = started(monkeypatch, spark, mode="Mirror", columns=columns, unknownColumns="Error", compression="zstd")

    assert made is Mirror.made
    assert made.path == "file:///lake/a b"
    assert "columns" not in made.source
    assert (made.given["columns"], made.given["growth"]) == ("`price` DOUBLE", "refuse")
    assert made.given["upkeep"] is not None
    assert made.steps == ["prepared", ("file:///var/lib/ots", {"processingTime": "5 seconds"})]
    assert spark.conf["spark.sql.parquet.compression.codec"] == "zstd"


def test_a_change_log_is_a_function_for_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Spark(**SESSION)

    started(monkeypatch, spark)

    calls = {name: (args, more) for name, args, more in spark.calls}
    (log,) = calls["foreachBatch"][0]
    assert (log.place.path, log.growth, log.upkeep is not None) == ("file:///lake/a b", "add", True)
    assert calls["check_age"][0] == ("file:///lake/a b", "file:///var/lib/ots")
    assert calls["option"][0] == ("checkpointLocation", "file:///var/lib/ots")
    assert calls["trigger"][1] == {"processingTime": "5 seconds"}
    assert spark.conf["spark.sql.parquet.compression.codec"] == "uncompressed"


def test_a_session_without_delta_is_refused_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(QueryRefused, match=r"spark\.sql\.extensions"):
        started(monkeypatch, Spark())


@pytest.mark.parametrize("error", [Py4JError("no such host"), AnalysisException("no such host")])
def test_a_bucket_that_does_not_answer_is_told_beside_its_fields(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    class Bucket(DeltaTable):
        @property
        def exists(self) -> bool:
            raise error

    monkeypatch.setattr(Delta, "kind", Bucket)
    monkeypatch.setattr(lake, "check_buckets", lambda spark: None)

    with pytest.raises(SinkError, match=r"sink\.files: the bucket of 's3://shop/t' at http://store:1.*no such host"):
        started(monkeypatch, Spark(**SESSION), url="s3://shop/t", endpoint="http://store:1")
