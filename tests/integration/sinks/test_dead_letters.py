"""Records that a real destination refuses: the others are stored, and each refused one is kept with its error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ots_emulator import Emulator
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.config import DeliveryConfig
from ots_tunnel.errors import SinkRejected
from ots_tunnel.model import Action, Marker, TunnelType
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import decode_rows, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.middleware.base import AtOnce, behind
from ots_tunnel.sinks.middleware.dead_letters import DeadLetters, letter_lines
from ots_tunnel.sinks.middleware.permanent_errors import LetteringSink, Tolerant
from ots_tunnel.sinks.table.sink import TablestoreSink
from ots_tunnel.transport.inprocess import InProcessTransport
from tests.support.emulator.emulator_scene import COPY, CREDENTIALS, TABLE, EmulatorScene, create_table_request
from tests.support.waiting import until

#: Versions older than a day are refused by the copy, which has a small deviation.
OLD_MS = 1_500_000_000_000
#: Heartbeat timeout where each record is to come once: beside other tests a process may stand still for a second.
PATIENT = 10


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    async with Emulator() as emulator:
        scene = EmulatorScene(emulator)
        await scene.create_table()
        await scene.create_table(table=COPY)
        request = pb.UpdateTableRequest(table_name=COPY)
        request.table_options.deviation_cell_version_in_sec = 86_400
        await scene.caller.call(TABLE_OPERATIONS["UpdateTable"], request)
        await scene.create_tunnel(TunnelType.Stream)
        yield scene


async def write_rows(scene: EmulatorScene, old: set[int]) -> None:
    rows = [
        RowChange(Action.PUT, encode_row((("pk", f"k{n:03}"),), (Column("n", n, OLD_MS if n in old else None),)))
        for n in range(150)
    ]
    outcomes = await scene.table.batch_write(TABLE, rows)
    assert all(outcome.code is None for outcome in outcomes)


def sink_of(scene: EmulatorScene) -> TablestoreSink:
    table = TableClient("http://emulator", "demo", CREDENTIALS, InProcessTransport(scene.emulator.handle))
    return TablestoreSink(table, COPY, delivery=DeliveryConfig(), lanes=4, deadline=5)


async def keys_of(scene: EmulatorScene) -> set[str]:
    page = await scene.table.get_range(COPY, (("pk", Marker.INF_MIN),), (("pk", Marker.INF_MAX),), max_versions=1)
    return {str(row.primary_key[0][1]) for row in decode_rows(page.rows)} if page.rows else set()


async def test_only_the_refused_records_are_missing(scene: EmulatorScene, tmp_path: Path) -> None:
    old = {0, 7, 77, 149}
    files = FileSettings(FolderStore(tmp_path), JsonLines(letter_lines), 1 << 20, 0.2, Backoff(0.01, 2, 0.1, 0))
    sink = LetteringSink(AtOnce(sink_of(scene)), DeadLetters(scene.tunnel_id, files))
    worker = scene.worker(sink, timeout=PATIENT)

    def letters() -> list[dict[str, object]]:
        return [json.loads(line) for path in tmp_path.rglob("*.jsonl") for line in path.read_text().splitlines()]

    async with scene.running(worker):
        await write_rows(scene, old)
        await until(lambda: len(letters()) == len(old), 20, "dead letters")
        await until(lambda: all(view.progress.caught_up for view in worker.status.channels.values()), 20, "confirmed")

    assert {letter["key"]["pk"] for letter in letters()} == {f"k{n:03}" for n in old}
    assert {letter["error"]["code"] for letter in letters()} == {"OTSParameterInvalid"}
    assert await keys_of(scene) == {f"k{n:03}" for n in range(150) if n not in old}
    assert sink.tally().records_dead_lettered == len(old)


async def test_more_refusals_than_an_error_names_are_skipped(scene: EmulatorScene) -> None:
    old = set(range(0, 150, 3))
    sink = behind(Tolerant(), sink_of(scene))
    async with scene.running(scene.worker(sink, timeout=PATIENT)):
        await write_rows(scene, old)
        await until(lambda: sink.tally().records_skipped == len(old), 20, "all were skipped")

    assert await keys_of(scene) == {f"k{n:03}" for n in range(150) if n not in old}


async def test_a_missing_table_refuses_no_record(scene: EmulatorScene) -> None:
    sink = behind(Tolerant(), sink_of(scene))
    worker = scene.worker(sink)
    running = asyncio.create_task(worker.run())
    await until(lambda: bool(worker.status.channels), 10, "connected")
    await scene.caller.call(TABLE_OPERATIONS["DeleteTable"], pb.DeleteTableRequest(table_name=COPY))
    await write_rows(scene, set())

    with pytest.raises(SinkRejected, match="OTSObjectNotExist"):
        await asyncio.wait_for(running, 20)
    assert sink.tally().records_skipped == 0


async def test_a_table_with_another_key_refuses_no_record(scene: EmulatorScene) -> None:
    await scene.caller.call(TABLE_OPERATIONS["DeleteTable"], pb.DeleteTableRequest(table_name=COPY))
    other = create_table_request(COPY)
    other.table_meta.primary_key[0].type = pb.INTEGER
    await scene.caller.call(TABLE_OPERATIONS["CreateTable"], other)
    sink = behind(Tolerant(), sink_of(scene))
    await write_rows(scene, set())

    with pytest.raises(SinkRejected, match="primary key: found pk INTEGER, needed pk STRING, as the source has it"):
        await asyncio.wait_for(scene.worker(sink).run(), 20)
    assert sink.tally().records_skipped == 0
