"""Every built-in sink keeps its guarantees behind every stack of middleware."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ots_tunnel.sinks.middleware import rate_limit
from tests.support.sink_kit import Destination, HangConformance, NewSink, RetryConformance, SinkConformance
from tests.support.sinks.destinations import Folder, Printed, TableDestination, TypedFolder, WebService
from tests.support.sinks.program import Program
from tests.support.sinks.stacks import EVERY_STACK, SLICE_SECONDS, stacked


class Behind:
    """The middleware of a stack."""

    @pytest.fixture
    def new_sink(
        self,
        destination: Destination,
        paced: bool,
        transformed: bool,
        policy: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> NewSink:
        monkeypatch.setattr(rate_limit, "SLICE_SECONDS", SLICE_SECONDS)
        return stacked(destination, tmp_path, paced, transformed, policy)


@EVERY_STACK
class TestTablestoreSink(Behind, SinkConformance, HangConformance, RetryConformance):
    @pytest.fixture
    async def destination(self, tmp_path: Path) -> AsyncIterator[TableDestination]:
        async with TableDestination.serving(tmp_path / "secret") as table:
            yield table


@EVERY_STACK
class TestHttpSink(Behind, SinkConformance, HangConformance, RetryConformance):
    @pytest.fixture
    async def destination(self) -> AsyncIterator[WebService]:
        async with WebService.serving() as service:
            yield service


@EVERY_STACK
@pytest.mark.parametrize("form", ["JsonLines", "Parquet"])
class TestFilesInAFolder(Behind, SinkConformance):
    @pytest.fixture
    def destination(self, tmp_path: Path, form: str) -> Folder:
        return Folder(tmp_path / "out", form)


@EVERY_STACK
class TestTypedFilesInAFolder(Behind, SinkConformance):
    @pytest.fixture
    def destination(self, tmp_path: Path) -> TypedFolder:
        return TypedFolder(tmp_path / "out")


@EVERY_STACK
class TestStdoutSink(Behind, SinkConformance):
    @pytest.fixture
    def destination(self, capfd: pytest.CaptureFixture[str]) -> Printed:
        return Printed(capfd)


@EVERY_STACK
@pytest.mark.parametrize("style", [None, "late"], ids=["automatic", "manual"])
class TestPythonSink(Behind, SinkConformance):
    @pytest.fixture
    def destination(self, style: str | None) -> Program:
        return Program(style)
