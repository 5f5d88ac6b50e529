"""A worker's sink compares its table with the source before the first row."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import TableDescription
from ots_tunnel.console.exit_codes import exit_code
from ots_tunnel.errors import (
    AuthFailed,
    CodecError,
    ConnectError,
    ObjectNotExist,
    PermissionDenied,
    ServerUnavailable,
    ServiceError,
    SinkError,
    TunnelError,
    WrongDestination,
)
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import TunnelId
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.sinks.choice import open_sink
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.start import Start
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.worker_status import WorkerStatus
from ots_tunnel.worker.stop_order import StopOrder
from tests.support.emulator.emulator_scene import COPY, TABLE, EmulatorScene, create_table_request

from .test_destination_replaced import document


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    """An emulator whose source table keeps three versions without end."""
    async with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        scene = EmulatorScene(emulator)
        scene.tunnel_id = TunnelId("any")
        await create(scene, TABLE)
        yield scene


async def create(scene: EmulatorScene, table: str, *, automatic: bool = False, **options: int) -> None:
    request = create_table_request(table, max_versions=3)
    request.table_meta.primary_key.add(name="n", type=pb.INTEGER)
    if automatic:
        request.table_meta.primary_key[1].option = pb.AUTO_INCREMENT
    for name, value in options.items():
        setattr(request.table_options, name, value)
    await scene.caller.call(TABLE_OPERATIONS["CreateTable"], request)


def fail_for_source(monkeypatch: pytest.MonkeyPatch, error: TunnelError) -> None:
    """Descriptions of the source fail; those of the copy do not."""
    fail_for(monkeypatch, TABLE, error)


def fail_for(monkeypatch: pytest.MonkeyPatch, failing: str, error: TunnelError) -> None:
    """Descriptions of one table fail."""
    describe = TableClient.describe_table

    async def describe_others(client: TableClient, table: str) -> TableDescription:
        if table == failing:
            raise error
        return await describe(client, table)

    monkeypatch.setattr(TableClient, "describe_table", describe_others)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_versions": 1}, "max versions: found 1, needed at least 3, as the source"),
        ({"time_to_live": 86_400}, "time to live seconds: found 86400, needed -1, as the source"),
        ({"automatic": True}, "primary key: found pk STRING, n INTEGER AUTO_INCREMENT, needed pk STRING, n INTEGER"),
        ({"deviation_cell_version_in_sec": 86_400}, "max version deviation seconds: found 86400, needed at least"),
    ],
)
async def test_a_table_that_cannot_be_equal_is_refused(
    scene: EmulatorScene, tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    await create(scene, COPY, **options)
    sink = open_sink(document(scene, tmp_path, "Skip"))

    with pytest.raises(WrongDestination) as caught:
        await sink.open()
    await sink.close()

    assert f"sink.tablestore.table '{COPY}' in instance 'demo'" in str(caught.value)
    assert told in str(caught.value)
    assert exit_code(caught.value) == 4


async def test_a_page_in_the_place_of_the_destination_can_be_tried_again(
    scene: EmulatorScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_for(monkeypatch, COPY, CodecError("answer of 30 bytes is not a DescribeTableResponse"))
    sink = open_sink(document(scene, tmp_path, "Fail"))

    with pytest.raises(SinkError, match=rf"^sink\.tablestore\.table '{COPY}' in .*: answer of 30 bytes") as caught:
        await sink.open()
    await sink.close()

    assert caught.value.retryable


async def test_a_source_that_may_not_be_described_is_none_to_compare_with(
    scene: EmulatorScene, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_for_source(monkeypatch, PermissionDenied("OTSNoPermissionAccess", "no", "r", 403))
    await create(scene, COPY, max_versions=1)
    sink = open_sink(document(scene, tmp_path, "Fail"))

    with caplog.at_level(logging.WARNING):
        await sink.open()
    await sink.close()

    (line,) = caplog.records
    assert line.__dict__["action"] is LogAction.SINK_NOT_COMPARED


async def test_an_equal_table_is_opened(scene: EmulatorScene, tmp_path: Path) -> None:
    await create(scene, COPY, max_versions=5)
    sink = open_sink(document(scene, tmp_path, "Fail"))

    await sink.open()
    await sink.close()


@pytest.mark.parametrize(
    "error",
    [
        ServerUnavailable("OTSServerUnavailable", "Server is busy.", "r", 503),
        ServiceError("OTSClientError", "no error of the service: Too Many Requests", "", 429),
        ConnectError("no connection"),
        CodecError("answer of 15 bytes is not a DescribeTableResponse"),
    ],
)
async def test_a_source_that_does_not_answer_is_asked_again_and_not_taken_for_the_sink(
    scene: EmulatorScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: TunnelError
) -> None:
    describe = TableClient.describe_table
    fail_for_source(monkeypatch, error)
    await create(scene, COPY, max_versions=3)
    sink = open_sink(document(scene, tmp_path, "Fail"))
    status = WorkerStatus("tunnel", "tag", WorkerMetrics("t"))
    tries: list[str] = []

    async def pause() -> None:
        tries.append(f"{status.error}")
        assert status.document()["sink"]["failing"] is None
        monkeypatch.setattr(TableClient, "describe_table", describe)

    status.sink_not_opened("the sink did not answer either, some time before")
    order = StopOrder((0.1, 0.2), lambda: 0.5)
    monkeypatch.setattr(order, "pause_before_retry", pause)
    await Start(WorkerSettings(TunnelId("any")), status, order).open_sink(sink)
    await sink.close()

    assert status.error is None
    assert len(tries) == 1
    assert tries[0].startswith(f"SourceUnanswered: source.table '{TABLE}' in instance 'demo' at http")


@pytest.mark.parametrize("kind", [AuthFailed, ObjectNotExist])
async def test_what_the_service_says_of_the_source_itself_ends_the_worker_with_its_own_code(
    scene: EmulatorScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[ServiceError]
) -> None:
    fail_for_source(monkeypatch, kind("OTSAny", "no", "r", 400))
    await create(scene, COPY)
    sink = open_sink(document(scene, tmp_path, "Fail"))

    with pytest.raises(kind, match=rf"source\.table '{TABLE}' .* is compared: no"):
        await sink.open()
    await sink.close()
