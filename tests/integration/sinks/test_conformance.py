"""Every built-in sink that stores records passes the conformance kit; `count` stores none, Kafka is in tests/kafka."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ots_tunnel.processor import ChannelContext, Confirm, SimpleProcessorFactory
from ots_tunnel.protocol.record import Record
from tests.support.sink_kit import (
    HangConformance,
    RefusalConformance,
    RetryConformance,
    SinkConformance,
    Stored,
    contents,
    page,
)
from tests.support.sinks.destinations import Bucket, Folder, Printed, TableDestination, WebService
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


@pytest.fixture(scope="module")
def store() -> Iterator[S3Store]:
    with s3_store() as store:
        yield store


class TestFilesInABucket(SinkConformance, RetryConformance):
    @pytest.fixture
    def destination(self, store: S3Store, tmp_path: Path) -> Bucket:
        store.heal()
        return Bucket(store, tmp_path.name, tmp_path / "secret")


class TestStdoutSink(SinkConformance):
    @pytest.fixture
    def destination(self, capfd: pytest.CaptureFixture[str]) -> Printed:
        return Printed(capfd)


class Program:
    """A user's own code that keeps what it processed; `factory` makes its processors."""

    section: ClassVar[Mapping[str, Any]] = {"python": {"factory": f"{__name__}:factory"}}
    current: ClassVar[Program]

    def __init__(self, *, manual: bool) -> None:
        self.manual = manual
        self._processed: list[Stored] = []
        self._running = threading.Event()
        self._running.set()

    async def stored(self) -> list[Stored]:
        return list(self._processed)

    def hang(self) -> None:
        self._running.clear()

    def resume(self) -> None:
        self._running.set()

    def process(self, context: ChannelContext, records: Sequence[Record], confirm: Confirm | None = None) -> None:
        self._running.wait(2)  # a callback that hangs longer ends the process
        self._processed += contents([page(0, records)])
        if confirm is not None:
            threading.Timer(0.01, confirm).start()


def factory() -> SimpleProcessorFactory:
    """What the document names."""
    program = Program.current
    return SimpleProcessorFactory(program.process, manual_checkpoints=program.manual)


@pytest.mark.parametrize("manual", [False, True], ids=["automatic", "manual"])
class TestPythonSink(SinkConformance):
    @pytest.fixture
    def destination(self, manual: bool) -> Program:
        Program.current = Program(manual=manual)
        return Program.current


class TestPythonSinkThatHangs(HangConformance):
    @pytest.fixture
    def destination(self) -> Program:
        Program.current = Program(manual=False)
        return Program.current
