"""What a driver's session gets for a bucket, and a session that cannot reach one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ots_tunnel.errors import ConfigError, QueryRefused
from ots_tunnel.query.document import QueryConfig
from ots_tunnel.query.settings import refused_settings
from ots_tunnel.spark.query.session import check_buckets, log_by_file_system, session_settings
from tests.support.documents.query_document import QUERY

PROFILE = "spark.hadoop.fs.s3a.bucket.lake.auth.profile.file"


def config(**files: Any) -> QueryConfig:
    return QueryConfig.model_validate({**QUERY, "sink": {"files": files}})


def in_a_bucket(**more: Any) -> QueryConfig:
    return config(url="s3://lake/t", format="Delta", **more)


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    for name in ("accessKeyId", "accessKeySecret"):
        (tmp_path / name).write_text("secret")
    return {"directory": str(tmp_path)}


def test_a_folder_needs_no_settings() -> None:
    with session_settings(config(url="file:///lake/t", format="Delta")) as settings:
        assert settings == {}


def test_a_profile_is_that_of_the_document(keys: dict[str, str]) -> None:
    with session_settings(in_a_bucket(credentials=keys, profileFile="/etc/ots/bucket.ini")) as settings:
        assert settings[PROFILE] == "/etc/ots/bucket.ini"


def test_a_profile_is_written_where_the_document_names_none_and_has_no_keys(keys: dict[str, str]) -> None:
    with session_settings(in_a_bucket(credentials=keys)) as settings:
        profile = Path(settings[PROFILE])
        text = profile.read_text()

    assert f"{keys['directory']}/accessKeyId" in text
    assert "secret" not in text.replace(keys["directory"], "")
    assert not profile.exists()


def test_without_credentials_the_session_keeps_its_own() -> None:
    with session_settings(in_a_bucket()) as settings:
        assert PROFILE not in settings


def test_keys_that_are_missing_are_named_before_a_session_starts(tmp_path: Path) -> None:
    lost = in_a_bucket(credentials={"directory": str(tmp_path / "gone")})

    with pytest.raises(ConfigError, match=r"sink\.files\.credentials\.directory"), session_settings(lost):
        pass


@pytest.mark.parametrize("found", [None, object()])
def test_a_session_without_hadoop_s_part_for_buckets_is_refused(monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
    hadoop = SimpleNamespace(getClassByNameOrNull=lambda _: found)
    context: Any = SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: hadoop))
    monkeypatch.setattr("ots_tunnel.spark.sessions.context_of", lambda spark: spark)

    if found is not None:
        check_buckets(context)
        return
    with pytest.raises(QueryRefused, match=r"found no org\.apache\.hadoop\.fs\.s3a\.S3AFileSystem .*hadoop-aws"):
        check_buckets(context)


@pytest.mark.parametrize("package", ["streaming.checkpointing", "streaming"])
def test_spark_s_logs_are_written_without_processes_in_each_release(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    there = f"org.apache.spark.sql.execution.{package}.FileSystemBasedCheckpointFileManager"
    found: dict[str, str] = {}
    session: Any = SimpleNamespace(conf=SimpleNamespace(set=found.__setitem__))
    monkeypatch.setattr("ots_tunnel.spark.query.session.has_class", lambda spark, name: name == there)

    log_by_file_system(session)

    assert found == {"spark.sql.streaming.checkpointFileManagerClass": there}
    assert not [*refused_settings(found)]
