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
from ots_tunnel.errors import PermissionDenied, ServerUnavailable, ServiceError, WrongDestination
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import TunnelId
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.sinks.choice import open_sink
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


def fail_for_source(monkeypatch: pytest.MonkeyPatch, error: ServiceError) -> None:
    """Descriptions of the source fail; those of the copy do not."""
    describe = TableClient.describe_table

    async def describe_copy_alone(client: TableClient, table: str) -> TableDescription:
        if table == TABLE:
            raise error
        return await describe(client, table)

    monkeypatch.setattr(TableClient, "describe_table", describe_copy_alone)


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


async def test_a_source_that_does_not_answer_is_not_taken_for_the_sink(
    scene: EmulatorScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_for_source(monkeypatch, ServerUnavailable("OTSServerUnavailable", "Server is busy.", "r", 503))
    await create(scene, COPY)
    sink = open_sink(document(scene, tmp_path, "Fail"))

    with pytest.raises(
        ServerUnavailable, match=f"source.table '{TABLE}', with which the sink's is compared: Server is"
    ):
        await sink.open()
    await sink.close()
