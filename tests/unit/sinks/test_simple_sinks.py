"""The sinks that print and count, and the choice of a sink."""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import os
import resource
import sys
import threading
from pathlib import Path

import pytest

from ots_tunnel.config import WorkerConfig
from ots_tunnel.errors import OwnershipLost, SinkError
from ots_tunnel.model import Action, CellOp, ChannelId, ChannelType, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.choice import open_sink
from ots_tunnel.sinks.count import CountSink
from ots_tunnel.sinks.stdout import StdoutSink
from ots_tunnel.sinks.table.sink import TablestoreSink
from tests.support.guards import ClosedGuard, OpenGuard
from tests.support.records import numbered_record

KEY = (("pk", "a"), ("b", b"\x00\xff"))
COLUMNS = (Column("x", "ü", 5), Column("raw", b"\x01", 6), Column("y", None, 4, CellOp.DELETE_ONE_VERSION))
RECORD = Record(Action.UPDATE, encode_row(KEY, COLUMNS, sequence=SequenceInfo(0, 12, 1)))
BATCH = Batch(ChannelId("c1"), ChannelType.STREAM, [RECORD, RECORD])


async def test_records_become_json_lines() -> None:
    out = io.BytesIO()
    await StdoutSink(out).write(BATCH, OpenGuard())

    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert json.loads(lines[0]) == {
        "action": "UPDATE",
        "channel": "c1",
        "sequence": [0, 12, 1],
        "key": {"pk": "a", "b": {"base64": "AP8="}},
        "columns": [
            {"name": "x", "op": "PUT", "value": "ü", "version": 5},
            {"name": "raw", "op": "PUT", "value": {"base64": "AQ=="}, "version": 6},
            {"name": "y", "op": "DELETE_ONE_VERSION", "version": 4},
        ],
    }


async def test_a_reader_that_stops_reading_does_not_stop_the_loop() -> None:
    read_on = threading.Event()

    class Full(io.BytesIO):
        def flush(self) -> None:
            assert read_on.wait(10)

    out = Full()
    sink = StdoutSink(out)
    writes = [asyncio.create_task(sink.write(BATCH, OpenGuard())) for _ in range(2)]
    await asyncio.sleep(0.02)
    assert not any(write.done() for write in writes)

    read_on.set()
    await asyncio.gather(*writes)

    assert len(out.getvalue().splitlines()) == 4


async def test_a_line_that_a_full_disk_has_torn_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = Batch(ChannelId("c"), ChannelType.STREAM, [numbered_record("a", 1), numbered_record("b", 2)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        sink = StdoutSink()
        for room in (50, 50):  # within the first line; then the disk is still full
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
            try:
                with pytest.raises(SinkError):
                    await sink.write(batch, OpenGuard())
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await sink.write(batch, OpenGuard())
        await sink.write(batch, OpenGuard())
    monkeypatch.undo()

    torn, *lines = (tmp_path / "out").read_text().splitlines()
    assert len(torn) == 50
    assert [json.loads(line)["key"]["id"] for line in lines] == ["a", "b", "a", "b"]


def test_a_pipe_holds_a_mebibyte_for_a_reader_who_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as reader, open(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        asyncio.run(StdoutSink().open())
        monkeypatch.undo()

        assert fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ) == 1 << 20


async def test_counting() -> None:
    sink = CountSink()
    await sink.write(BATCH, OpenGuard())

    assert (sink.rows, sink.bytes) == (2, 2 * RECORD.size)


@pytest.mark.parametrize("sink", [CountSink(), StdoutSink(io.BytesIO())])
async def test_nothing_passes_a_closed_fence(sink: CountSink | StdoutSink) -> None:
    with pytest.raises(OwnershipLost):
        await sink.write(BATCH, ClosedGuard())


@pytest.fixture
def keys_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("accessKeyId", "accessKeySecret"):
        (tmp_path / name).write_text("key")


@pytest.mark.parametrize(
    ("member", "kind"),
    [
        ({"stdout": {}}, StdoutSink),
        ({"count": {}}, CountSink),
        (
            {
                "tablestore": {
                    "endpoint": "http://127.0.0.1:1",
                    "instance": "demo",
                    "table": "copy",
                    "credentials": {"directory": "."},
                }
            },
            TablestoreSink,
        ),
    ],
)
@pytest.mark.usefixtures("keys_here")
async def test_the_document_chooses_the_sink(member: dict[str, object], kind: type, tmp_path: Path) -> None:
    config = WorkerConfig.model_validate(
        {
            "source": {
                "endpoint": "http://127.0.0.1:1",
                "instance": "demo",
                "table": "t",
                "credentials": {"directory": str(tmp_path)},
                "tunnelName": "t",
                "tunnelId": "id",
            },
            "sink": member,
        }
    )
    sink = open_sink(config)

    assert isinstance(sink, kind)
    await sink.close()
