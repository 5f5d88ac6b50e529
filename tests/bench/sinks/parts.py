"""Where the CPU of a sink goes: each part of the work alone, in one process; a web service in another takes batches.

    python -m tests.bench.sinks.parts [--rounds N]

Prints CPU seconds per million rows of the scene. What a run of `tests.bench.sinks` takes beyond the sum of its parts is
reading and the pipeline.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from ots_tunnel.config import FilesSinkConfig
from ots_tunnel.model import Action, ChannelId, SequenceInfo
from ots_tunnel.protocol import tunnel_pb2
from ots_tunnel.protocol.page import read_page
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.cloud_events import CONTENT_TYPE, Event, Events, batch_body
from ots_tunnel.sinks.files.parquet import ROW_GROUP_BYTES, parquet_writer
from ots_tunnel.sinks.files.rows.coded_texts import coded
from ots_tunnel.sinks.files.rows.declared import Declared
from ots_tunnel.sinks.files.rows.row_form import ChangeLogForm, RowForm, TypedForm
from ots_tunnel.sinks.grouping import Grouping, Limits
from ots_tunnel.sinks.json_bytes import json_lines
from ots_tunnel.transport.guarded_body import GuardedBody
from tests.bench.bench_scene import REQUEST_ROWS, declared_columns, key_of, row_of
from tests.bench.figures import MILLION
from tests.bench.sinks.receiver import running_receiver

CHANNEL = ChannelId("channel-1")
#: Rows of a page, and pages: more rows than a row group of Parquet has.
PAGE_ROWS, PAGES = 1_000, 20
ROWS = PAGE_ROWS * PAGES
#: That a request may take.
SECONDS = 30.0
VERSION_MS, WRITTEN_US = 1_700_000_000_000, 1_700_000_000_000_000


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the work of a sink; `work` does it for `ROWS` rows."""

    sink: str
    what: str
    work: Callable[[], object]

    def cpu_per_million(self, rounds: int) -> float:
        """CPU seconds per million rows: the least of some rounds, since other programs can only add to it."""
        used = []
        for _ in range(rounds):
            began = time.process_time()
            self.work()
            used.append(time.process_time() - began)
        return min(used) / ROWS * MILLION


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="of each part; the least is shown (default 5)")
    rounds = parser.parse_args().rounds
    if rounds < 1:
        parser.error("--rounds: at least 1")
    table = Table("sink", "part", "CPU s/M rows", title=f"parts of sinks, the least of {rounds} rounds")
    table.columns[2].justify = "right"
    with tempfile.TemporaryDirectory() as folder:
        for part in parts(Path(folder)):
            table.add_row(part.sink, part.what, f"{part.cpu_per_million(rounds):.2f}")
    Console(width=100).print(table)
    return 0


def parts(folder: Path) -> Iterator[Part]:
    """All parts; files are written into `folder`."""
    bodies = [_page(number) for number in range(PAGES)]
    yield Part("every sink", "frame the page", lambda: [read_page(body) for body in bodies])
    pages = [read_page(body).records for body in bodies]
    yield from _lines(pages, folder)
    declared = Declared.of(_typed(folder))
    assert declared is not None, "it has columns"
    yield from _parquet("changes in Parquet", ChangeLogForm(), pages, folder)
    yield from _parquet("typed Parquet", TypedForm(declared), pages, folder)
    yield from _events(pages)


def _page(number: int) -> bytes:
    """The answer of a read with the rows of a page."""
    answer = tunnel_pb2.ReadRecordsResponse(next_token="next")
    for at in range(number * PAGE_ROWS, (number + 1) * PAGE_ROWS):
        cells = tuple(Column(cell.name, cell.value, VERSION_MS) for cell in row_of(at))
        body = encode_row(key_of(at), cells, sequence=SequenceInfo(0, WRITTEN_US + at, 0))
        answer.records.add(action_type=int(Action.PUT), record=body)
    return answer.SerializeToString()


def _typed(folder: Path) -> FilesSinkConfig:
    columns = [{"name": name, "type": kind} for name, kind in declared_columns()]
    return FilesSinkConfig.model_validate({"url": f"file://{folder}", "format": "Parquet", "columns": columns})


def _lines(pages: list[list[Record]], folder: Path) -> Iterator[Part]:
    yield Part("JSON lines", "make the text", lambda: [list(json_lines(records, CHANNEL)) for records in pages])
    portions = [portion for records in pages for portion in json_lines(records, CHANNEL)]

    def write() -> None:
        with pa.output_stream(str(folder / "lines"), compression=None) as stream:
            for portion in portions:
                stream.write(portion)

    yield Part("JSON lines", "hand it to the kernel", write)


def _parquet(name: str, form: RowForm, pages: list[list[Record]], folder: Path) -> Iterator[Part]:
    schema = form.schema(pages[0][0].primary_key)

    def columns() -> list[pa.RecordBatch]:
        return [batch for records in pages for batch in form.batches(records, CHANNEL, coded(schema))]

    groups = list(_groups(columns()))

    def write() -> None:
        with parquet_writer(folder / "rows.parquet", schema, form, "NONE") as writer:
            for group in groups:
                writer.write_table(group, row_group_size=len(group))

    yield Part(name, "fill columns", columns)
    yield Part(name, "pyarrow encodes and writes them", write)


def _groups(batches: list[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.nbytes for each in held) >= ROW_GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _events(pages: list[list[Record]]) -> Iterator[Part]:
    name, made = "CloudEvents", Events(CHANNEL, "ots://demo/changes", "t-1")

    def events() -> list[Event]:
        found: list[Event] = []
        for records in pages:
            at = 0
            while at < len(records):
                of_slice = made.of(records, at)
                found += of_slice
                at += len(of_slice)
        return found

    taken = events()

    def group() -> list[tuple[Event, ...]]:
        found = []
        for first in range(0, ROWS, PAGE_ROWS):
            grouping: Grouping[Event] = Grouping(Limits(REQUEST_ROWS))
            grouping.extend(taken[first : first + PAGE_ROWS])
            while batch := grouping.take():
                found.append(batch)
                grouping.settle(batch)
        return found

    batches = group()
    bodies = [batch_body(batch) for batch in batches]
    yield Part(name, "make the events", events)
    yield Part(name, "group them into batches", group)
    yield Part(name, "join a batch", lambda: [batch_body(batch) for batch in batches])
    yield Part(name, "SHA-256 of a batch", lambda: [hashlib.sha256(body).hexdigest() for body in bodies])
    with running_receiver() as receiver:
        yield Part(name, "a request for each batch", lambda: asyncio.run(_send(receiver.url("parts"), bodies)))


async def _send(url: str, bodies: list[bytes]) -> None:
    """Post the batches one after the other, as the sink does."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        for body in bodies:
            guarded = GuardedBody(body, lambda: None, SECONDS)
            async with session.post(url, data=guarded, headers={"content-type": CONTENT_TYPE}) as answer:
                answer.raise_for_status()
                guarded.answered()


if __name__ == "__main__":
    sys.exit(main())
