"""Files in a bucket, against a server that speaks S3."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from ots_tunnel.config import CredentialsConfig, FileStoreConfig
from ots_tunnel.errors import ConfigError, OwnershipLost, SinkError, SinkRejected
from ots_tunnel.sinks.files.bucket_store import PART_BYTES, BucketStore
from tests.unit.sinks.files.conftest import Closed, Open


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """URL of a store with the bucket `shop`."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = boto3.client(
        "s3", endpoint_url=url, aws_access_key_id="id", aws_secret_access_key="secret", region_name="us-east-1"
    )
    client.create_bucket(Bucket="shop")
    client.close()
    yield url
    server.stop()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "accessKeyId").write_text("id")
    (tmp_path / "secret" / "accessKeySecret").write_text("not shown")
    return tmp_path / "secret"


def store(s3: str, secret: Path, tmp_path: Path, bucket: str = "shop") -> BucketStore:
    config = FileStoreConfig(
        url=f"s3://{bucket}/copy/orders", endpoint=s3, credentials=CredentialsConfig(directory=secret)
    )
    return BucketStore(config, path="sink.files", deadline=10, spool_directory=tmp_path)


async def publish(bucket: BucketStore, content: bytes, name: str, guard: Open | Closed) -> Path:
    spooled = await bucket.spool("t/c 1")
    spooled.write_bytes(content)
    await bucket.publish(spooled, "t/c 1", name, guard.check)
    return spooled


@pytest.mark.parametrize("size", [3, PART_BYTES * 2 + 5])
async def test_a_file_is_published_listed_read_and_deleted(s3: str, secret: Path, tmp_path: Path, size: int) -> None:
    bucket = store(s3, secret, tmp_path)
    await bucket.check()
    content = bytes(range(256)) * (size // 256 + 1)
    spooled = await publish(bucket, content[:size], "a.jsonl", Open())

    assert not spooled.exists()
    assert await bucket.names("t/c 1") == ["a.jsonl"]
    assert await bucket.names("t") == []
    with await bucket.read("t/c 1", "a.jsonl") as file:
        assert await asyncio.to_thread(file.read) == content[:size]
    await bucket.delete("t/c 1", ["a.jsonl", "never there"])
    assert await bucket.names("t/c 1") == []


@pytest.mark.parametrize("size", [3, PART_BYTES * 2 + 5])
async def test_nothing_appears_behind_the_fence(s3: str, secret: Path, tmp_path: Path, size: int) -> None:
    bucket = store(s3, secret, tmp_path)
    with pytest.raises(OwnershipLost):
        await publish(bucket, b"x" * size, "late.jsonl", Closed())

    assert await bucket.names("t/c 1") == []


async def test_a_missing_bucket_is_refused_for_good(s3: str, secret: Path, tmp_path: Path) -> None:
    with pytest.raises(SinkRejected, match="s3://nowhere/copy/orders: the bucket does not exist"):
        await store(s3, secret, tmp_path, "nowhere").check()


async def test_a_store_that_does_not_answer_is_worth_another_try(secret: Path, tmp_path: Path) -> None:
    with pytest.raises(SinkError) as raised:
        await store("http://127.0.0.1:9", secret, tmp_path).check()
    assert raised.value.retryable
    assert "not shown" not in str(raised.value)


def test_missing_credentials_are_a_wrong_configuration(s3: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="accessKeyId: missing or empty"):
        store(s3, tmp_path, tmp_path)
