"""The peers of `tests.bench.sinks` write the documents that our sinks write, but for what their SDKs report otherwise.

The records hold every type, several versions, both deletions of cells, an increment, a deleted row, and a text with
U+2028, which ends no line. What the SDKs report otherwise is in `as_reported_by`, and a difference that is gone fails
the test as a new one does.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action, CellOp, ChannelId, ClientId, KeyColumn, KeyType, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.json_record import json_form
from ots_tunnel.tables import TableSchema
from tests.bench.bench_scene import BenchScene, bench_scene_on
from tests.bench.consumers import Lab
from tests.bench.contenders import Contender, Programs
from tests.bench.sinks.works import WORKS, SinkWork
from tests.kafka.broker import running_broker
from tests.kafka.certificate import make_certificate
from tests.kafka.topic import read_topic

pytestmark = [pytest.mark.oracle, pytest.mark.long, pytest.mark.timeout(900), pytest.mark.lasts(20)]

TABLE = "every_type"
#: Whole milliseconds near the present, which the service asks for.
VERSION = 1_764_000_000_000
FOREVER = 2_000_000_000

#: Names of types in rows.
TYPE_WORDS: dict[type, str] = {int: "integer", float: "double", bool: "boolean", str: "string", bytes: "binary"}

Document = dict[str, Any]


def key(number: int) -> PrimaryKey:
    return (("device", f"k-{number}"), ("reading", number), ("tag", bytes((0, 255, number))))


TEXT = 'a line\u2028and\u2029another\n"quoted" \\ <b>&amp;</b> \x00\x7f é 漢 \U0001f600'
VALUES: tuple[Column, ...] = (
    Column("text", TEXT),
    Column("empty", ""),
    Column("integer", -(2**63)),
    Column("beyond_a_double", 2**63 - 1),
    Column("zero", 0),
    Column("double", 0.1),
    Column("whole", 5.0),
    Column("large", 1.5e300),
    Column("small", 5e-324),
    Column("true", True),
    Column("false", False),
    Column("bytes", bytes(range(256))),
    Column("no_bytes", b""),
)
VERSIONS: tuple[Column, ...] = tuple(Column("version", number, VERSION + number) for number in (3, 2, 1))
CHANGES = [
    (Action.PUT, key(1), VALUES),
    (Action.PUT, key(2), (*VERSIONS, Column("count", 40), Column("gone", "x"))),
    (Action.UPDATE, key(2), (Column("version", None, VERSION + 2, CellOp.DELETE_ONE_VERSION), Column("new", "n"))),
    (Action.UPDATE, key(2), (Column("count", 2, None, CellOp.INCREMENT),)),
    (Action.UPDATE, key(2), (Column("gone", None, None, CellOp.DELETE_ALL_VERSIONS),)),
    (Action.PUT, key(3), ()),
    (Action.DELETE, key(1), ()),
]


def as_reported_by(contender: Contender, document: Document) -> Document:
    """What a peer writes in place of a document of ours.

    Go: a deletion of all versions has the version 0, where the wire has none. A double without a fraction has no point,
    by encoding/json. The SDK never sets the epoch, which is 0 on the emulator, too.
    Java: nothing.
    """
    if contender is not Contender.GO:
        return document
    columns = []
    for column in document["columns"]:
        value = column.get("value")
        if column["op"] == "DELETE_ALL_VERSIONS":
            column = {**column, "version": 0}
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
            column = {**column, "value": int(value)}
        columns.append(column)
    return {**document, "columns": columns}


@pytest.fixture
async def lab(go_worker: Path, java_sinks: Path, tmp_path: Path) -> AsyncIterator[Lab]:
    core = max(os.sched_getaffinity(0))
    async with bench_scene_on(min(os.sched_getaffinity(0))) as scene:
        await scene.create_empty(
            TableSchema(
                TABLE,
                (
                    KeyColumn("device", KeyType.STRING),
                    KeyColumn("reading", KeyType.INTEGER),
                    KeyColumn("tag", KeyType.BINARY),
                ),
                max_versions=3,
                deviation_seconds=FOREVER,
            ),
            channels=1,
        )
        await scene.switch_stream_on(TABLE)
        for action, primary_key, columns in CHANGES:
            body = encode_row(primary_key, columns, delete=action is Action.DELETE)
            await scene.write(TABLE, [RowChange(action, body)])
        await scene.mark(TABLE, len(CHANGES))
        yield Lab(scene, Programs(go_worker, java_sinks), tmp_path, core)


async def wire_records(scene: BenchScene) -> list[Record]:
    """The records of the table as the service gives them."""
    tunnel = await scene.create_tunnel(TABLE, len(CHANGES))
    (channel,) = (await scene.client.describe_tunnel(TABLE, tunnel.name)).channels
    ids = (tunnel.tunnel_id, ClientId("reader"), channel.channel_id)
    start = await scene.client.get_checkpoint(*ids)
    return (await scene.client.read_records(*ids, start.token)).records


async def test_the_wire_has_no_version_of_a_deletion_of_all(lab: Lab) -> None:
    deleted = [
        column
        for record in await wire_records(lab.scene)
        for column in record.columns
        if column.op is CellOp.DELETE_ALL_VERSIONS
    ]

    assert [(column.name, column.timestamp_ms, column.value) for column in deleted] == [("gone", None, None)]


def expected(records: Iterable[Record], contender: Contender) -> list[Document]:
    """The documents of a contender, without their channel, which every tunnel has anew."""
    return [as_reported_by(contender, without_channel(json_form(record, ChannelId("")))) for record in records]


def without_channel(document: Document) -> Document:
    return {name: value for name, value in document.items() if name != "channel"}


def strict(documents: Iterable[Document]) -> list[str]:
    """Documents as texts: 5 and 5.0 differ, true and 1 too."""
    return [json.dumps(document, sort_keys=True) for document in documents]


async def measure(lab: Lab, contender: Contender, work: SinkWork, to: str, stdout: int | None = None) -> None:
    await lab.measure(contender, TABLE, len(CHANGES), work.job(to, 0), stdout=stdout)


WORK = {work.name: work for work in WORKS}


@pytest.mark.parametrize("contender", WORK["lines"].contenders)
async def test_lines(lab: Lab, contender: Contender, tmp_path: Path) -> None:
    records = await wire_records(lab.scene)
    folder = tmp_path / "lines"
    folder.mkdir()
    with (tmp_path / "printed").open("wb") as printed:
        await measure(lab, contender, WORK["stdout"], "", printed.fileno())
    await measure(lab, contender, WORK["lines"], str(folder))

    (file,) = (path for path in folder.rglob("*") if path.is_file())
    for path in (file, tmp_path / "printed"):
        lines = path.read_bytes().split(b"\n")
        assert lines.pop() == b""
        assert strict(map(without_channel, map(json.loads, lines))) == strict(expected(records, contender))


@pytest.mark.parametrize("contender", WORK["http"].contenders)
async def test_events(lab: Lab, contender: Contender) -> None:
    records = await wire_records(lab.scene)
    events: list[Document] = []

    async def take(request: web.Request) -> web.Response:
        assert request.content_type == "application/cloudevents-batch+json"
        assert request.headers["webhook-id"].startswith("msg_")
        events.extend(json.loads(await request.read()))  # changes of one row may come in several batches
        return web.Response(status=204)

    service = web.Application()
    service.router.add_post("/in", take)
    async with TestServer(service) as server:
        await measure(lab, contender, WORK["http"], str(server.make_url("/in")))

    events.sort(key=lambda event: tuple(event["data"]["sequence"]))
    found = [event.pop("data") for event in events]
    assert strict(map(without_channel, found)) == strict(expected(records, contender))
    for event, record, data in zip(events, records, found, strict=True):
        assert json.loads(event.pop("subject")) == data["key"]
        assert event.pop("id").endswith(f"{data['channel']}:{'.'.join(map(str, data['sequence']))}")
        assert event.pop("time").endswith(f".{data['sequence'][1] % 1_000_000:06}Z")
        assert event == {
            "specversion": "1.0",
            "source": f"ots://demo/{TABLE}",
            "type": f"dev.ots-tunnel.row.{record.action.name.lower()}",
            "datacontenttype": "application/json",
        }


@pytest.mark.xdist_group("kafka")
async def test_messages(lab: Lab, tmp_path: Path) -> None:
    records = await wire_records(lab.scene)
    make_certificate(tmp_path)
    with running_broker(tmp_path, tmp_path / "key.pem") as broker:
        ours = None
        for contender in WORK["kafka"].contenders:
            topic = broker.create_topic(f"from-{contender.name.lower()}")
            await measure(lab, contender, WORK["kafka"], f"{broker.address()}/{topic}")
            found = sorted(read_topic(broker.address(), topic), key=lambda read: tuple(read.value["sequence"]))
            documents = [without_channel(read.value) for read in found]
            assert strict(documents) == strict(expected(records, contender)), contender
            frames = [(read.partition, read.key, {**read.headers, "ots-tunnel": ""}) for read in found]
            ours = frames if ours is None else ours
            assert frames == ours, contender


@pytest.mark.parametrize("contender", WORK["parquet"].contenders)
async def test_rows(lab: Lab, contender: Contender, tmp_path: Path) -> None:
    records = await wire_records(lab.scene)
    folder = tmp_path / "rows"
    folder.mkdir()
    await measure(lab, contender, WORK["parquet"], str(folder))

    (file,) = folder.rglob("*.parquet")
    rows = pq.read_table(file).to_pylist()
    assert list(map(without_channel, rows)) == [row_of(record) for record in records]


@pytest.mark.parametrize("contender", WORK["typed"].contenders)
async def test_typed_rows(lab: Lab, contender: Contender, tmp_path: Path) -> None:
    """Every type is declared but that of bytes; versions and deletions are in the columns of the form."""
    records = await wire_records(lab.scene)
    declared = {cell.name: TYPE_WORDS[type(cell.value)] for cell in (*VALUES, Column("new", "n"))}
    del declared["bytes"], declared["no_bytes"]
    folder = tmp_path / "rows"
    folder.mkdir()
    await measure(lab, contender, replace(WORK["typed"], columns=tuple(declared.items())), str(folder))

    (file,) = folder.rglob("*.parquet")
    rows = pq.read_table(file).to_pylist()
    assert list(map(without_channel, rows)) == [typed_row_of(record, declared) for record in records]


def typed_row_of(record: Record, declared: Collection[str]) -> Document:
    """The typed row of a record, by our decoder."""
    row = row_of(record)
    cells = row.pop("cells")
    latest: dict[str, Document] = {}
    for cell in cells:
        if cell["operation"] == "PUT":
            latest.setdefault(cell["name"], cell)
    version = next((cell["version"] for cell in latest.values()), None)
    values = {name: cell["value"][cell["type"]] for name, cell in latest.items()}
    return {
        **row,
        **{name: values.get(name) for name in declared},
        "deleted": [cell["name"] for cell in cells if cell["operation"] == "DELETE_ALL_VERSIONS"],
        "others": [(name, cell["value"]) for name, cell in latest.items() if name not in declared],
        "version": version,
        "versions": [(name, cell["version"]) for name, cell in latest.items() if cell["version"] != version],
        "cells": [
            cell
            for cell in cells
            if cell["operation"] != "DELETE_ALL_VERSIONS" and not any(cell is each for each in latest.values())
        ],
    }


def row_of(record: Record) -> Document:
    """The row of a record, by our decoder."""
    sequence = record.sequence
    assert sequence is not None
    return {
        "action": record.action.name,
        "sequence": {
            "epoch": sequence.epoch,
            "timestamp_us": sequence.timestamp_us,
            "row_index": sequence.row_index,
        },
        "key": dict(record.primary_key),
        "cells": [
            {
                "name": column.name,
                "operation": column.op.name,
                "type": TYPE_WORDS.get(type(column.value)),
                "version": column.timestamp_ms,
                "value": None
                if column.value is None
                else {name: column.value if type(column.value) is kind else None for kind, name in TYPE_WORDS.items()},
            }
            for column in record.columns
        ],
    }
