"""A mirror in a bucket, by the driver program of a query, with the jars that our image has."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ots_tunnel.model import TunnelType
from tests.support.lake.one_version_changes import Changes
from tests.support.sinks.s3_store import S3Store, s3_store
from tests.support.waiting import wait_until

from .test_lake import Runs, Source, as_stored, check_batches, document_of, mirrored, source, submit_arguments

__all__ = ["source", "submit_arguments"]

# in the group of the other lakes: one session at a time
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600), pytest.mark.xdist_group("lake"), pytest.mark.lasts(150)]

TABLE = "s3a://shop/lake/flights"
DRIVER = ("-m", "ots_tunnel.spark.query.driver", "--config")


@pytest.fixture
def store() -> Iterator[S3Store]:
    with s3_store() as store:
        yield store


@pytest.fixture
def runs(submit_arguments: str, store: S3Store, tmp_path: Path) -> Runs:
    """Sessions that know the store as those of a program of one's own do; a document overrides it."""
    own = {"endpoint": store.url, "path.style.access": "true", "access.key": "id", "secret.key": "secret"}
    confs = " ".join(f"--conf spark.hadoop.fs.s3a.{name}={value}" for name, value in own.items())
    return Runs(f"{confs} {submit_arguments}", tmp_path)


def keys_in(folder: Path, key: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "accessKeyId").write_text(key)
    (folder / "accessKeySecret").write_text(f"{key}-secret")
    return folder


def place(store: S3Store, keys: Path) -> dict[str, object]:
    return {"url": "s3://shop/lake/flights", "endpoint": store.url, "credentials": {"directory": str(keys)}}


def test_a_mirror_in_a_bucket_equals_its_table_after_a_kill(source: Source, runs: Runs, store: S3Store) -> None:
    keys = keys_in(runs.folder / "keys", "of-the-document")
    changes = Changes(31, 40, int(time.time() * 1000))
    source.write(changes.make(100))
    source.create_tunnel(TunnelType.Stream)
    source.write(changes.make(50))
    driver = runs.start(*DRIVER, str(document_of(source, runs.folder, "Mirror", **place(store, keys))))
    try:
        wait_until(lambda: "batch 0 is written" in runs.output() or driver.poll() is not None, 900, explain=runs.output)
        source.write(changes.make(50))
        wait_until(lambda: "batch 1 is written" in runs.output() or driver.poll() is not None, 300, explain=runs.output)
        assert driver.poll() is None, runs.output()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait(30)
    assert set(store.key_ids) == {"of-the-document"}
    source.write(changes.make(50))

    wanted = ("--dump", "--columns", "price DOUBLE", "--table", TABLE)
    assert runs.program("mirror", source.options, *wanted) == 0, runs.output()

    assert mirrored(runs.dumped("rows")) == as_stored(source.rows())
    check_batches(runs.dumped("batches"))
    assert not (runs.folder / "table").exists()
    assert {name.partition("/")[0] for name in store.names()} == {"lake"}


def test_a_bucket_that_refuses_the_keys_is_one_line_and_may_be_tried_again(
    source: Source, runs: Runs, store: S3Store
) -> None:
    keys = keys_in(runs.folder / "keys", "wrong")
    source.create_tunnel(TunnelType.Stream)
    for method in ("GET", "HEAD", "PUT"):
        store.fail(method, status=403, code="InvalidAccessKeyId", times=1_000)

    code = runs.run(*DRIVER, str(document_of(source, runs.folder, "Mirror", **place(store, keys))))

    assert code == 1, runs.output()
    (error,) = runs.errors()
    assert "sink.files: the bucket of 's3://shop/" in error, error
    assert "credentials" in error, error
    assert "wrong-secret" not in runs.output()
