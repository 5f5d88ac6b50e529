"""What of a run arrived: counts of files, of a pipe and of events, and their check."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from aiohttp import web

from ots_tunnel.model import Action, ChannelId
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.cloud_events import Events, batch_body
from tests.bench.contenders import Contender
from tests.bench.sinks.destinations import Places
from tests.bench.sinks.receiver import EVENT, Service
from tests.bench.sinks.rounds import check_arrived, documents_of
from tests.bench.sinks.works import SIZES, WORKS


def test_lines_are_those_of_published_files_and_end_with_a_newline_only(tmp_path: Path) -> None:
    with Places(tmp_path).destination("lines") as destination:
        folder = Path(destination.to, "channel")
        folder.mkdir()
        (folder / "a.jsonl").write_text("1\n2\u20282\n")
        (folder / "b.jsonl").write_text("3\n")
        (folder / ".c").write_text("4\n")

        assert destination.count() == 3
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("work", ["parquet", "typed"])
def test_rows_are_those_of_all_files(work: str, tmp_path: Path) -> None:
    with Places(tmp_path).destination(work) as destination:
        for name, rows in (("a.parquet", 2), ("b.parquet", 3)):
            pq.write_table(pa.table({"n": list(range(rows))}), Path(destination.to, name))

        assert destination.count() == 5


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    lines = 100_000  # more than the pipe holds
    with Places(tmp_path).destination("stdout") as destination:
        assert destination.stdout is not None
        worker = os.dup(destination.stdout)
        with open(worker, "wb") as file:
            file.write(b"a\n" * lines)

        assert (destination.to, destination.count()) == ("", lines)


def test_an_event_is_counted_once_whatever_its_text() -> None:
    text = EVENT.decode()
    row = encode_row((("k", text),), (Column(text, text), Column("specversion", "1.0")))
    (event,) = Events(ChannelId("c"), text, "t-1").of([Record(Action.PUT, row)], 0)

    assert event.body.startswith(EVENT)
    assert batch_body((event, event)).count(EVENT) == 2


@dataclass
class Post:
    """A request whose body arrives when the gate is open."""

    gate: asyncio.Event
    path: str = "/run"

    async def read(self) -> bytes:
        await self.gate.wait()
        return EVENT * 2


async def test_batches_that_arrive_at_once_are_all_counted() -> None:
    service, gate = Service(), asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(service.take(cast(web.Request, Post(gate))))
        await asyncio.sleep(0)  # all of them have begun to read
        gate.set()

    assert (await service.tell(cast(web.Request, Post(gate)))).text == "6"


@pytest.mark.parametrize("arrived", [9, 11])
def test_a_run_that_lost_or_repeated_a_record_is_no_measurement(arrived: int) -> None:
    check_arrived(WORKS[0], Contender.GO, 10, 10)
    with pytest.raises(RuntimeError, match=f"{arrived} records arrived, there were 10"):
        check_arrived(WORKS[0], Contender.GO, 10, arrived)


def test_the_goal_beside_the_peers_is_about_the_better_one() -> None:
    used = {Contender.OURS: 1.0, Contender.JAVA: 5.0, Contender.GO: 3.0}
    ours, java, go = documents_of(WORKS[0], used, "settings")

    assert (ours["ours"], ours["goal"], ours["met"]) == (1, 1.2, True)
    assert (java["ratio"], java["goal"]) == (5, None)
    assert (go["ratio"], go["goal"], go["met"]) == (3, 4, False)


def test_every_contender_has_rows_behind_its_mark() -> None:
    for work in WORKS:
        for contender in work.contenders:
            mark, rows = SIZES[contender]
            assert 0 < mark < rows
