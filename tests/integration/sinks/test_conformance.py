"""Every built-in sink that stores records passes the conformance kit; `count` stores none, Kafka is in tests/kafka."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.sink_kit import HangConformance, RefusalConformance, RetryConformance, SinkConformance
from tests.support.sinks.destinations import Bucket, Folder, Printed, TableDestination, TypedFolder, WebService
from tests.support.sinks.program import Program
from tests.support.sinks.s3_store import S3Store, s3_store


class TestTablestoreSink(SinkConformance, HangConformance, RetryConformance, RefusalConformance):
    @pytest.fixture
    async def destination(self, tmp_path: Path) -> AsyncIterator[TableDestination]:
        async with TableDestination.serving(tmp_path / "secret") as table:
            yield table


class TestHttpSink(SinkConformance, HangConformance, RetryConformance, RefusalConformance):
    @pytest.fixture
    async def destination(self) -> AsyncIterator[WebService]:
        async with WebService.serving() as service:
            yield service


@pytest.mark.parametrize("form", ["JsonLines", "Parquet"])
class TestFilesInAFolder(SinkConformance):
    @pytest.fixture
    def destination(self, tmp_path: Path, form: str) -> Folder:
        return Folder(tmp_path / "out", form)


class TestTypedFilesInAFolder(SinkConformance, RefusalConformance):
    @pytest.fixture
    def destination(self, tmp_path: Path) -> TypedFolder:
        return TypedFolder(tmp_path / "out")


@pytest.fixture(scope="module")
def store() -> Iterator[S3Store]:
    with s3_store() as store:
        yield store


class TestFilesInABucket(SinkConformance, RetryConformance):
    @pytest.fixture
    def destination(self, store: S3Store, tmp_path: Path) -> Bucket:
        store.heal()
        # an address of its own: sinks with the same one share their spool, and another process may test the same
        return Bucket(store, uuid.uuid4().hex, tmp_path / "secret")


class TestStdoutSink(SinkConformance):
    @pytest.fixture
    def destination(self, capfd: pytest.CaptureFixture[str]) -> Printed:
        return Printed(capfd)


@pytest.mark.parametrize("style", [None, "late"], ids=["automatic", "manual"])
class TestPythonSink(SinkConformance):
    @pytest.fixture
    def destination(self, style: str | None) -> Program:
        return Program(style)


class TestPythonSinkThatHangs(HangConformance):
    @pytest.fixture
    def destination(self) -> Program:
        return Program(None)
