"""The version of Spark, the image and the settings of a query, by the format of its files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.query.settings import KEPT_CLASSES
from ots_tunnel.spark.lake.tables.iceberg import EXTENSION
from ots_tunnel_operator.manifests.spark.query_session import ICEBERG_SPARK_VERSION
from ots_tunnel_operator.manifests.spark.submission import SPARK_VERSION
from ots_tunnel_operator.plan.query import query_objects
from ots_tunnel_operator.settings import Settings
from tests.support.operator.query_worlds import BY_QUERY, query_resource, query_world
from tests.support.operator.worlds import planned, resource

IMAGE = Path(__file__).parents[4] / "worker" / "image"
SETTINGS = Settings(spark_image="spark:1", spark_iceberg_image="iceberg:1")


def application(file_format: str, **spark: Any) -> Any:
    files = {"url": "file:///lake/flights", "format": file_format}
    of = resource(**BY_QUERY | {"sink": {"files": files}, "spark": BY_QUERY["spark"] | spark})
    return query_objects(of.object, "tunnel-1", SETTINGS)[-1]["spec"]


@pytest.mark.parametrize(
    ("file_format", "image", "version"),
    [
        ("Parquet", "spark:1", SPARK_VERSION),
        ("Delta", "spark:1", SPARK_VERSION),
        ("Iceberg", "iceberg:1", ICEBERG_SPARK_VERSION),
    ],
)
def test_each_format_has_its_image_and_its_version(file_format: str, image: str, version: str) -> None:
    found = application(file_format)

    assert (found["image"], found["sparkVersion"]) == (image, version)


def test_an_object_may_name_another_image_and_other_partitions() -> None:
    found = application("Iceberg", image="own:2", conf={"spark.sql.shuffle.partitions": "32"})

    assert found["image"] == "own:2"
    assert found["sparkConf"]["spark.sql.shuffle.partitions"] == "32"


@pytest.mark.parametrize("file_format", ["Delta", "Iceberg"])
def test_a_session_that_merges_keeps_what_it_compiles(file_format: str) -> None:
    ((setting, classes),) = KEPT_CLASSES.items()

    assert application(file_format)["sparkConf"][setting] == classes
    assert application(file_format, conf={setting: "5000"})["sparkConf"][setting] == "5000"


def test_iceberg_has_its_statements_and_nothing_of_delta() -> None:
    conf = application("Iceberg", conf={"spark.sql.extensions": "a.B"})["sparkConf"]

    assert conf["spark.sql.extensions"] == EXTENSION
    assert conf["spark.sql.shuffle.partitions"] == "16"
    assert not [name for name in conf if "delta" in name or "catalog" in name]


def test_the_version_is_that_of_the_image_and_its_jar() -> None:
    pinned = [line for line in (IMAGE / "iceberg/requirements.txt").read_text().splitlines() if "pyspark" in line]
    _, jar = (IMAGE / "iceberg/jars.sha256").read_text().split()
    minor = ICEBERG_SPARK_VERSION.rpartition(".")[0]

    assert [line.split()[0] for line in pinned] == [f"pyspark=={ICEBERG_SPARK_VERSION}"]
    assert jar.startswith(f"iceberg-spark-runtime-{minor}_2.13-")


def test_a_name_that_iceberg_has_itself_is_told_before_anything_is_created() -> None:
    files = {"url": "file:///lake/flights", "format": "Iceberg", "columns": [{"name": "_file", "type": "string"}]}
    problem = planned(query_world({}, query_resource({}, sink={"files": files}), query_pods=())).problem

    assert problem is not None
    assert problem.reason == "InvalidSpec"
    assert "sink.files.columns: found '_file', a name that Iceberg needs itself" in problem.message


def test_another_image_for_iceberg_replaces_that_of_its_queries_alone() -> None:
    other = replace(SETTINGS, spark_iceberg_image="iceberg:2")

    for file_format, changes in (("Delta", False), ("Iceberg", True)):
        of = query_resource({}, sink={"files": {"url": "file:///lake/flights", "format": file_format}}).object
        assert (query_objects(of, "t", SETTINGS) != query_objects(of, "t", other)) is changes
