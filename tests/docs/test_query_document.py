"""The document of a query's driver, and the application that runs it, as the pages show them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ots_tunnel.query.document import QueryConfig, load_query_config
from ots_tunnel.query.files import files_folder
from ots_tunnel.query.record import read_query_record
from ots_tunnel_operator.manifests.spark.submission import SPARK_VERSION
from tests.docs.pages import DOCS, page

EXAMPLE = list(yaml.safe_load_all((DOCS / "examples" / "stream-to-files.yaml").read_text()))


def test_the_documented_document_is_one(tmp_path: Path) -> None:
    path = tmp_path / "query.yaml"
    path.write_text(page("docs/spark.md").block("How do I run such a query without writing a program?", "yaml"))

    assert [column.name for column in load_query_config(path).sink.files.columns or ()] == ["price", "customer"]


def found(kind: str, name: str) -> dict[str, Any]:
    [item] = [item for item in EXAMPLE if (item["kind"], item["metadata"]["name"]) == (kind, name)]
    assert item["metadata"]["namespace"] == "shop"
    return dict(item)


@pytest.fixture
def config(tmp_path: Path) -> QueryConfig:
    path = tmp_path / "query.yaml"
    path.write_text(found("ConfigMap", "orders-lake-query")["data"]["query.yaml"])
    return load_query_config(path)


def mounts(pod: dict[str, Any]) -> dict[str, Any]:
    """What is mounted where."""
    [container] = pod["containers"]
    sources = {volume.pop("name"): volume for volume in [dict(volume) for volume in pod["volumes"]]}
    return {mount["mountPath"]: sources[mount["name"]] for mount in container["volumeMounts"]}


def test_the_application_has_what_its_document_names(config: QueryConfig) -> None:
    spec = found("SparkApplication", "orders-lake")["spec"]
    driver, executor = (mounts(spec[role]["template"]["spec"]) for role in ("driver", "executor"))
    claims = {
        path: volume["persistentVolumeClaim"]["claimName"]
        for path, volume in driver.items()
        if "persistentVolumeClaim" in volume
    }

    assert spec["arguments"] == ["--config", "/etc/ots/query.yaml"]
    assert driver["/etc/ots"] == {"configMap": {"name": "orders-lake-query"}}
    assert str(config.source.credentials.directory) in driver
    # executors have the files alone
    assert executor == {str(files_folder(config.sink.files).parent): driver["/lake"]}
    assert str(config.checkpoint_directory.parent) in claims
    for claim in claims.values():
        found("PersistentVolumeClaim", claim)
    for role in ("driver", "executor"):
        found("ServiceAccount", spec[role]["serviceAccount"])


def test_the_record_is_one_that_the_driver_writes(config: QueryConfig) -> None:
    assert config.progress is not None

    record = found("ConfigMap", config.progress.config_map)

    assert (config.progress.namespace, config.progress.label) == ("shop", read_query_record(record).label)


def test_the_application_is_of_our_image() -> None:
    spec = found("SparkApplication", "orders-lake")["spec"]
    program = spec["mainApplicationFile"].rpartition("/")[2]

    assert spec["sparkVersion"] == SPARK_VERSION
    assert (DOCS.parent / "worker" / "image" / program).is_file()
