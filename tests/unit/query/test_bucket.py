"""What Hadoop is told of a bucket, and the keys that its profile's command prints."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ots_tunnel.credentials import FileCredentials
from ots_tunnel.query.bucket import bucket_settings, profile_text
from ots_tunnel.query.files import QueryFilesConfig, table_place

OF_BUCKET = "spark.hadoop.fs.s3a.bucket.lake."
#: A busy store, or one that does not listen, is told within about a minute.
RETRIES = {
    f"{OF_BUCKET}retry.throttle.limit": "6",
    f"{OF_BUCKET}retry.limit": "4",
    f"{OF_BUCKET}connection.establish.timeout": "10s",
}


def files(**more: Any) -> QueryFilesConfig:
    return QueryFilesConfig.model_validate({"url": "s3://lake/a%20b/t", "format": "Delta", **more})


def test_the_settings_concern_the_bucket_alone_and_name_its_store() -> None:
    store = {"endpoint": "https://oss-cn-hangzhou.aliyuncs.com", "region": "oss-cn-hangzhou", "bucketInHost": True}

    settings = bucket_settings(files(**store), Path("/etc/ots/bucket.ini"))

    assert settings == {
        f"{OF_BUCKET}endpoint": "https://oss-cn-hangzhou.aliyuncs.com",
        f"{OF_BUCKET}endpoint.region": "oss-cn-hangzhou",
        f"{OF_BUCKET}path.style.access": "false",
        **RETRIES,
        f"{OF_BUCKET}aws.credentials.provider": "org.apache.hadoop.fs.s3a.auth.ProfileAWSCredentialsProvider",
        f"{OF_BUCKET}auth.profile.file": "/etc/ots/bucket.ini",
        f"{OF_BUCKET}auth.profile.name": "default",
    }


def test_without_credentials_the_session_has_its_own_and_the_store_is_still_the_document_s() -> None:
    assert bucket_settings(files(), None) == {
        f"{OF_BUCKET}endpoint": "s3.amazonaws.com",
        f"{OF_BUCKET}endpoint.region": "us-east-1",
        f"{OF_BUCKET}path.style.access": "true",
        **RETRIES,
    }


def test_a_table_has_the_scheme_of_hadoop_and_the_prefix_as_it_is_written() -> None:
    assert table_place(files()) == "s3a://lake/a%20b/t"


@pytest.mark.parametrize("url", ["s3://lake//", "s3://lake///", "file:////", "file:///a/.."])
def test_the_root_is_no_place_for_a_table_however_it_is_written(url: str) -> None:
    with pytest.raises(ValidationError, match="below the root"):
        QueryFilesConfig.model_validate({"url": url, "format": "Delta"})


@pytest.mark.parametrize(
    ("key", "secret", "token"),
    [
        ("id\r\n", "secret\r\n", None),
        (" id", "se\\nc", None),
        ("id", 's"e\\c', None),
        ("id", "s", "\n"),
        ("id", "s", "t\r\n"),
    ],
)
def test_the_command_prints_what_a_worker_reads(tmp_path: Path, key: str, secret: str, token: str | None) -> None:
    for name, value in (("accessKeyId", key), ("accessKeySecret", secret), ("securityToken", token)):
        if value is not None:
            (tmp_path / name).write_bytes(value.encode())
    line = profile_text(tmp_path).partition(" = ")[2]

    printed = json.loads(subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout)

    wanted = FileCredentials(tmp_path)()
    found = (printed["AccessKeyId"], printed["SecretAccessKey"], printed.get("SessionToken"))
    assert found == (wanted.access_key_id, wanted.access_key_secret, wanted.security_token)


@pytest.mark.parametrize("token", ["", "t+/=o"])
def test_the_command_of_the_profile_prints_the_keys_of_the_folder(tmp_path: Path, token: str) -> None:
    folder = tmp_path / "a 'folder' $HOME; `x`"
    folder.mkdir()
    for name, value in (("accessKeyId", "LTAI-1\n"), ("accessKeySecret", "s/+=%s"), ("securityToken", token)):
        if value:
            (folder / name).write_text(value)

    section, command = profile_text(folder, seconds=90).splitlines()

    assert section == "[default]"
    name, _, line = command.partition(" = ")
    assert name == "credential_process"
    # a blank before either begins a comment in a profile
    assert " #" not in line
    assert " ;" not in line
    printed = json.loads(subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout)
    left = datetime.fromisoformat(printed.pop("Expiration")) - datetime.now(UTC)
    assert timedelta(seconds=30) < left <= timedelta(seconds=90)
    keys = {"Version": 1, "AccessKeyId": "LTAI-1", "SecretAccessKey": "s/+=%s"}
    assert printed == (keys | {"SessionToken": token} if token else keys)
