"""Files in a bucket, against a server that speaks S3."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ots_tunnel.config import CredentialsConfig, FileStoreConfig
from ots_tunnel.credentials import LOOK_INTERVAL
from ots_tunnel.errors import ConfigError, OwnershipLost, SinkError, SinkRejected
from ots_tunnel.sinks import Guard
from ots_tunnel.sinks.files.bucket import PART_BYTES, BucketStore
from ots_tunnel.sinks.files.first_key import first_key
from ots_tunnel.sinks.files.store import FileSpoiled
from ots_tunnel.transport.sending_limit import KERNEL_SHARE
from tests.support.guards import ClosedGuard, OpenGuard
from tests.support.sinks.s3_store import S3Store, s3_store
from tests.support.waiting import until


@pytest.fixture(scope="module")
def server() -> Iterator[S3Store]:
    with s3_store() as store:
        yield store


@pytest.fixture
def s3(server: S3Store) -> str:
    """URL of a store with the bucket `shop`."""
    server.heal()
    return server.url


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "accessKeyId").write_text("id")
    (tmp_path / "secret" / "accessKeySecret").write_text("not shown")
    return tmp_path / "secret"


def store(s3: str, secret: Path, tmp_path: Path, bucket: str = "shop", deadline: float = 10) -> BucketStore:
    config = FileStoreConfig(
        url=f"s3://{bucket}/copy/orders", endpoint=s3, credentials=CredentialsConfig(directory=secret)
    )
    return BucketStore(config, path="sink.files", deadline=deadline, spool_directory=tmp_path)


async def publish(bucket: BucketStore, content: bytes, name: str, guard: Guard) -> Path:
    spooled = await bucket.spool("t/c 1")
    spooled.write_bytes(content)
    await bucket.publish(spooled, "t/c 1", name, guard.check)
    return spooled


@pytest.mark.parametrize("size", [3, PART_BYTES * 2 + 5])
async def test_a_file_is_published_listed_read_and_deleted(s3: str, secret: Path, tmp_path: Path, size: int) -> None:
    bucket = store(s3, secret, tmp_path)
    await bucket.check()
    content = bytes(range(256)) * (size // 256 + 1)
    spooled = await publish(bucket, content[:size], "a.jsonl", OpenGuard())

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
        await publish(bucket, b"x" * size, "late.jsonl", ClosedGuard())

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


@pytest.mark.parametrize(("status", "code"), [(503, "SlowDown"), (500, "InternalError")])
@pytest.mark.parametrize(("method", "size"), [("PUT", 3), ("POST", PART_BYTES + 5)])
async def test_a_store_that_fails_for_a_while_is_tried_again(
    server: S3Store, s3: str, secret: Path, tmp_path: Path, status: int, code: str, method: str, size: int
) -> None:
    bucket = store(s3, secret, tmp_path)
    server.fail(method, status=status, code=code, times=100)
    spooled = await bucket.spool("t/c 1")
    spooled.write_bytes(b"x" * size)
    with pytest.raises(SinkError) as raised:
        await bucket.publish(spooled, "t/c 1", "a.jsonl", OpenGuard().check)
    assert raised.value.retryable
    assert not isinstance(raised.value, FileSpoiled)
    assert await bucket.names("t/c 1") == []

    server.heal()
    await bucket.publish(spooled, "t/c 1", "a.jsonl", OpenGuard().check)
    assert await bucket.names("t/c 1") == ["a.jsonl"]
    assert not spooled.exists()
    await bucket.delete("t/c 1", ["a.jsonl"])


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(("method", "size"), [("PUT", 3), ("PUT", PART_BYTES + 5), ("GET", 0), ("POST", 0)])
async def test_a_store_that_denies_is_refused_for_good(
    server: S3Store, s3: str, secret: Path, tmp_path: Path, status: int, method: str, size: int
) -> None:
    bucket = store(s3, secret, tmp_path)
    await bucket.check()
    server.fail(method, status=status, code="AccessDenied", times=100)
    calls = {
        "PUT": lambda: publish(bucket, b"x" * size, "a.jsonl", OpenGuard()),
        "GET": lambda: bucket.check(),
        "POST": lambda: bucket.delete("t/c 1", ["a.jsonl"]),
    }
    with pytest.raises(SinkRejected, match="s3://shop/copy/orders"):
        await calls[method]()


async def test_changed_keys_are_used_at_once(server: S3Store, s3: str, secret: Path, tmp_path: Path) -> None:
    bucket = store(s3, secret, tmp_path)
    await bucket.check()
    assert server.key_ids[-1] == "id"
    (secret / "accessKeyId").write_text("another")
    os.utime(secret / "accessKeyId", ns=(1, 1))
    await asyncio.sleep(LOOK_INTERVAL + 0.1)

    await bucket.check()
    assert server.key_ids[-1] == "another"


@pytest.mark.parametrize("size", [3, PART_BYTES + 5])
async def test_an_answer_that_never_comes_is_not_waited_for(
    server: S3Store, s3: str, secret: Path, tmp_path: Path, size: int
) -> None:
    released = threading.Event()
    bucket = store(s3, secret, tmp_path, deadline=1)
    server.fail("PUT", hang=released, times=100)
    spooled = await bucket.spool("t/c 1")
    spooled.write_bytes(b"x" * size)
    try:
        with pytest.raises(SinkError) as raised:
            await asyncio.wait_for(bucket.publish(spooled, "t/c 1", "a.jsonl", OpenGuard().check), 15)
    finally:
        released.set()
    assert raised.value.retryable
    # by a store of the usual patience: the list itself may take a busy machine a second
    assert await store(s3, secret, tmp_path).names("t/c 1") == []


async def test_a_delete_without_an_answer_may_still_be_carried_out(
    server: S3Store, s3: str, secret: Path, tmp_path: Path
) -> None:
    """No later file of its name is published meanwhile."""
    released = threading.Event()
    bucket = store(s3, secret, tmp_path, deadline=0.5)
    server.fail("POST", hang=released, times=100)
    began = asyncio.get_running_loop().time()
    try:
        with pytest.raises(SinkError) as raised:
            await bucket.delete("t/c 1", ["a.jsonl"])
    finally:
        released.set()
    assert raised.value.retryable
    assert asyncio.get_running_loop().time() - began >= (KERNEL_SHARE + 1) * 0.5


@pytest.mark.parametrize("rounds", range(5))
async def test_a_cancellation_beside_an_answer_is_not_swallowed(
    s3: str, secret: Path, tmp_path: Path, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    answer = asyncio.Event()

    async def delete(store: object, path: str) -> None:
        asked.append(path)
        await answer.wait()

    monkeypatch.setattr("obstore.delete_async", delete)
    deleting = asyncio.create_task(store(s3, secret, tmp_path).delete("t", ["a", "b"]))
    await until(lambda: asked == ["t/a"], what="the first call")
    monkeypatch.setattr("obstore.delete_async", lambda *_: asyncio.Event().wait())
    answer.set()
    for _ in range(rounds):
        await asyncio.sleep(0)
    deleting.cancel()

    done, _ = await asyncio.wait([deleting], timeout=30)
    assert done
    assert deleting.cancelled()


async def test_a_file_that_is_gone_from_the_disk_is_read_again(s3: str, secret: Path, tmp_path: Path) -> None:
    bucket = store(s3, secret, tmp_path)
    with pytest.raises(FileSpoiled):
        await bucket.publish(tmp_path / "gone", "t/c 1", "a.jsonl", OpenGuard().check)


async def test_a_file_that_cannot_be_read_from_the_bucket_is_tried_again(
    server: S3Store, s3: str, secret: Path, tmp_path: Path
) -> None:
    bucket = store(s3, secret, tmp_path)
    await publish(bucket, b'{"key": {"pk": 1}}\n', "a.jsonl", OpenGuard())
    with await bucket.read("t/c 1", "a.jsonl") as file:
        server.fail("GET", times=100)
        with pytest.raises(SinkError) as raised:
            await asyncio.to_thread(first_key, "0000000000.1.jsonl", file)
    assert raised.value.retryable
    server.heal()
    await bucket.delete("t/c 1", ["a.jsonl"])


async def test_a_file_that_the_disk_did_not_take_is_not_uploaded(
    s3: str, secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that could not be written are dropped, and a read may bring back what was there before."""

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    bucket = store(s3, secret, tmp_path)
    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(FileSpoiled, match="Input/output error"):
        await publish(bucket, b"lost", "a.jsonl", OpenGuard())
    assert await bucket.names("t/c 1") == []


async def test_unfinished_files_of_a_killed_worker_are_removed(s3: str, secret: Path, tmp_path: Path) -> None:
    killed = store(s3, secret, tmp_path)
    mine, others = await killed.spool("t/c 1"), await killed.spool("t/c 2")
    for path in (mine, others):
        path.write_bytes(b"half a rec")

    await store(s3, secret, tmp_path).tidy("t/c 1")

    assert not mine.exists()
    assert others.exists()


@pytest.fixture
def kept_by_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file can be removed."""

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path))

    monkeypatch.setattr(Path, "unlink", refuse)


@pytest.mark.usefixtures("kept_by_the_disk")
async def test_an_uploaded_file_is_published_also_where_the_disk_keeps_it(
    s3: str, secret: Path, tmp_path: Path
) -> None:
    bucket = store(s3, secret, tmp_path)

    await publish(bucket, b"x", "kept.jsonl", OpenGuard())

    assert await bucket.names("t/c 1") == ["kept.jsonl"]
    await bucket.delete("t/c 1", ["kept.jsonl"])


@pytest.mark.usefixtures("kept_by_the_disk")
async def test_a_disk_that_keeps_unfinished_files_is_an_error_of_the_sink(
    s3: str, secret: Path, tmp_path: Path
) -> None:
    bucket = store(s3, secret, tmp_path)
    (await bucket.spool("t/c 1")).write_bytes(b"x")

    with pytest.raises(SinkRejected, match=r"^PermissionError: .*: Operation not permitted$"):
        await bucket.tidy("t/c 1")


@pytest.mark.parametrize("folder", ["t/c 1", "t/c%201", "t/%2E%2E"])
async def test_only_names_behind_another_one_are_asked_for(s3: str, secret: Path, tmp_path: Path, folder: str) -> None:
    bucket = store(s3, secret, tmp_path)
    names = ["1-2.5.jsonl", "1-3.5.jsonl", "1-4.5.jsonl.gz"]
    for name in names:
        spooled = await bucket.spool(folder)
        spooled.write_bytes(b"rows")
        await bucket.publish(spooled, folder, name, OpenGuard().check)

    assert sorted(await bucket.names(folder)) == names
    assert sorted(await bucket.names(folder, after="1-3")) == names[1:]
    assert sorted(await bucket.names(folder, after="1-3.5.jsonl")) == names[2:]
    assert await bucket.names(folder, after="2") == []
    assert await bucket.names("t", after="0") == []
    await bucket.delete(folder, names)
