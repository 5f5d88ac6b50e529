"""The document of a query's driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ots_tunnel.errors import ConfigError
from ots_tunnel.query.document import QueryConfig, dump_query_config, load_query_config
from tests.support.documents.query_document import QUERY

KEYS = {"directory": "/etc/ots/secrets/sink"}


def stored(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / "query.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def parquet(*names: str) -> dict[str, Any]:
    columns = [{"name": name, "type": "string"} for name in names]
    return {"url": "file:///lake", "format": "Parquet", "columns": columns}


def bucket(url: str) -> dict[str, Any]:
    return {"url": url, "format": "Delta"}


def mirror(name: str) -> dict[str, Any]:
    return parquet(name) | {"format": "Delta", "mode": "Mirror"}


def test_a_document_is_read_as_it_was_written(tmp_path: Path) -> None:
    config = load_query_config(stored(tmp_path, QUERY))
    (tmp_path / "again.yaml").write_text(dump_query_config(config))

    assert load_query_config(tmp_path / "again.yaml") == config


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"sink": {"files": {"url": "s3://lake/t"}}},
            "sink.files.url: found 's3://lake/t' with format JsonLines, allowed is file:///path with it, or",
        ),
        ({"sink": {"files": bucket("s3://lake")}}, "sink.files.url: found 's3://lake', allowed is file:///path"),
        ({"sink": {"files": bucket("s3://my_lake/t")}}, "sink.files.url: found 's3://my_lake/t', allowed is"),
        ({"sink": {"files": bucket("s3://lake/a//t")}}, "sink.files.url: found 's3://lake/a//t', allowed is a prefix"),
        (
            {"sink": {"files": bucket("s3://lake/t") | {"credentials": KEYS, "caFile": "/ca.pem"}}},
            "sink.files.caFile: found a file, allowed is none: Java trusts the authorities of its own store",
        ),
        (
            {"sink": {"files": bucket("s3://lake/t") | {"profileFile": "/bucket.ini"}}},
            "sink.files.profileFile: found without credentials, allowed is with them",
        ),
        (
            {"sink": {"files": mirror("price") | {"endpoint": "https://oss-cn-hangzhou.aliyuncs.com"}}},
            "sink.files.endpoint: found with url 'file:///lake', allowed is a url s3://bucket/prefix with it",
        ),
        (
            {"sink": {"files": {"url": "file:///lake", "columns": [{"name": "a", "type": "string"}]}}},
            "sink.files.columns: found with format JsonLines, allowed are Parquet, Delta and Iceberg",
        ),
        (
            {"sink": {"files": {"url": "file:///lake", "mode": "Mirror"}}},
            "sink.files.mode: found Mirror with format JsonLines, allowed are Delta and Iceberg",
        ),
        (
            {"sink": {"files": parquet("price") | {"unknownColumns": "Map"}}},
            "sink.files.unknownColumns: found with format Parquet, allowed are Delta and Iceberg",
        ),
        (
            {"sink": {"files": {"url": "file:///lake", "format": "Delta", "unknownColumns": "Map"}}},
            "sink.files.unknownColumns: found without columns, allowed is with them, or with mode Mirror",
        ),
        (
            {"sink": {"files": {"url": "file:///lake", "compression": "zstd"}}},
            "sink.files.compression: found zstd with format JsonLines, allowed are none and gzip",
        ),
        (
            {"sink": {"files": mirror("_Others")}},
            "sink.files.columns: found '_Others' beside '_others', allowed are names that differ in more than case",
        ),
        ({"sink": {"files": mirror("_versions")}}, "sink.files.columns: found '_versions' beside '_versions'"),
        (
            {"sink": {"files": mirror("_row_dropped_")}},
            "sink.files.columns: found '_row_dropped_', a name that Delta needs itself",
        ),
        (
            {"sink": {"files": parquet("_file") | {"format": "Iceberg"}}},
            "sink.files.columns: found '_file', a name that Iceberg needs itself",
        ),
        (
            {"sink": {"files": {"url": "s3://lake/orders", "format": "Iceberg"}}},
            "sink.files.url: found 's3://lake/orders' with format Iceberg, allowed is file:///path with it",
        ),
        (
            {"sink": {"files": parquet("price", "Price")}},
            "sink.files.columns: found 'Price' beside 'price', allowed are names that differ in more than case",
        ),
        (
            {"sink": {"files": parquet("Action")}},
            "sink.files.columns: found 'Action' beside 'action', allowed are names that differ in more than case",
        ),
        ({"checkpointDirectory": "lake"}, "checkpointDirectory: found lake, allowed is an absolute path"),
        ({"checkpointDirectory": "s3://lake/t"}, "checkpointDirectory: found s3:/lake/t, allowed is an absolute path"),
        ({"heartbeatIntervalSeconds": 11}, "heartbeatTimeoutSeconds: found 30, allowed is at least 3 times"),
        ({"maxBytesPerBatch": 1}, "maxBytesPerBatch: found 1, allowed is"),
        ({"checkpointDirectory": ""}, "checkpointDirectory: found ''"),
        ({"endTime": "2026-01-01T00:00:00Z"}, "endTime"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_query_config(stored(tmp_path, {**QUERY, **change}))

    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_defaults_fit_each_other() -> None:
    config = QueryConfig.model_validate(QUERY)

    assert (config.trigger_interval_seconds, config.max_bytes_per_batch) == (5, 16_777_216)


@pytest.mark.parametrize("tag", ["", "a b", "a" * 65])
def test_a_tag_that_the_service_may_not_take_is_refused(tmp_path: Path, tag: str) -> None:
    with pytest.raises(ConfigError, match=r"clientTag: found .* allowed is up to 64 letters, digits and dashes"):
        load_query_config(stored(tmp_path, {**QUERY, "clientTag": tag}))
