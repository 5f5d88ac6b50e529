"""Destinations of the built-in sinks, as the sink conformance kit sees them (`sink_kit`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from aiohttp import web

from ots_emulator import Emulator
from ots_emulator.server.faults import FaultRule
from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import Action, Credentials, SequenceInfo
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.transport.inprocess import InProcessTransport
from tests.support.sink_kit import Stored, change, stored_in_json
from tests.support.sinks.s3_store import S3Store

#: Retries of one call inside obstore, set by the sink; the sink sees only later failures.
RETRIES_OF_OBSTORE = 3
#: Bytes above which the service refuses a column.
TOO_LARGE = 2 * 1024 * 1024 + 1


class WebService:
    """A web service that stores CloudEvents; refuses the events of keys in `refused_keys`."""

    def __init__(self) -> None:
        self.section: Mapping[str, Any] = {}
        self._stored: list[Stored] = []
        self._failures = 0
        self._refused_keys: set[int] = set()
        self._answering = asyncio.Event()
        self._answering.set()

    @classmethod
    @asynccontextmanager
    async def serving(cls) -> AsyncIterator[WebService]:
        """The service on a port of loopback."""
        service = cls()
        async with _serving(service._take, "/in") as endpoint:
            service.section = {"http": {"url": f"{endpoint}/in"}}
            yield service

    async def stored(self) -> list[Stored]:
        """See `Destination.stored`."""
        return list(self._stored)

    def hang(self) -> None:
        """See `Hanging.hang`."""
        self._answering.clear()

    def resume(self) -> None:
        """See `Hanging.resume`."""
        self._answering.set()

    def fail(self, times: int) -> None:
        """See `Unreliable.fail`."""
        self._failures = times

    def refused(self, key: int, number: int) -> Record:
        """See `Choosy.refused`."""
        self._refused_keys.add(key)
        return change(key, number, padding=0)

    async def _take(self, request: web.Request) -> web.Response:
        events = json.loads(await request.read())
        await self._answering.wait()
        if self._failures:
            self._failures -= 1
            return web.Response(status=429)
        if self._refused_keys & {event["data"]["key"]["id"] for event in events}:
            return web.Response(status=422)
        self._stored += [stored_in_json(event["data"]) for event in events]
        return web.Response(status=204)


class TableDestination:
    """A table of an emulator; its contents are taken from the executed requests, in their order."""

    def __init__(self, emulator: Emulator) -> None:
        self.section: Mapping[str, Any] = {}
        self._emulator = emulator
        self._stored: list[Stored] = []
        self._answering = asyncio.Event()
        self._answering.set()

    @classmethod
    @asynccontextmanager
    async def serving(cls, folder: Path) -> AsyncIterator[TableDestination]:
        """The table of an emulator behind a port of loopback."""
        _keep_keys(folder, "test-id", "test-secret")
        async with Emulator() as emulator:
            credentials = static_credentials(Credentials("test-id", "test-secret"))
            caller = ServiceCaller(InProcessTransport(emulator.handle), "demo", credentials)
            for name in ("orders", "copy"):  # the source of the document is in the same instance
                await caller.call(TABLE_OPERATIONS["CreateTable"], _table(name))
            table = cls(emulator)
            async with _serving(table._take, "/{operation}") as endpoint:
                place = {"endpoint": endpoint, "instance": "demo", "table": "copy"}
                table.section = {"tablestore": {**place, "credentials": {"directory": str(folder)}}}
                yield table

    async def stored(self) -> list[Stored]:
        """See `Destination.stored`."""
        return list(self._stored)

    def hang(self) -> None:
        """See `Hanging.hang`."""
        self._answering.clear()

    def resume(self) -> None:
        """See `Hanging.resume`."""
        self._answering.set()

    def fail(self, times: int) -> None:
        """See `Unreliable.fail`."""
        self._emulator.add_fault(FaultRule("BatchWriteRow", count=times, code="OTSServerBusy"))

    def refused(self, key: int, number: int) -> Record:
        """See `Choosy.refused`: a column is larger than the service allows."""
        columns = (Column("n", number), Column("padding", "." * TOO_LARGE))
        row = encode_row((("id", key),), columns, sequence=SequenceInfo(0, 1_700_000_000_000_000 + number, key))
        return Record(Action.PUT, row)

    async def _take(self, request: web.Request) -> web.Response:
        asked = HttpRequest(request.path, dict(request.headers), await request.read())
        if request.path == "/BatchWriteRow":
            await self._answering.wait()
        answer = await self._emulator.handle(asked)
        if request.path == "/BatchWriteRow" and answer.status == 200:
            rows = pb.BatchWriteRowRequest.FromString(asked.body).tables[0].rows
            outcomes = pb.BatchWriteRowResponse.FromString(answer.body).tables[0].rows
            self._stored += [_of_row(row.row_change) for row, out in zip(rows, outcomes, strict=True) if out.is_ok]
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


class Folder:
    """A folder of published files."""

    def __init__(self, path: Path, form: str) -> None:
        self._path = path
        place = {"url": path.as_uri(), "format": form, "maxFileBytes": 65_536, "maxFileSeconds": 1}
        self.section: Mapping[str, Any] = {"files": place}

    async def stored(self) -> list[Stored]:
        """See `Destination.stored`; the file names give the order."""
        found: list[Stored] = []
        for file in sorted(path for path in self._path.rglob("*") if path.is_file() and not path.name.startswith(".")):
            if file.suffix == ".parquet":
                found += map(_of_arrow, await asyncio.to_thread(_parquet_rows, file))
            else:
                found += [stored_in_json(json.loads(line)) for line in file.read_text().splitlines()]
        return found


class TypedFolder(Folder):
    """A folder of typed files, in which the number of a change is an integer; `padding` has no column."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "Parquet")
        self.section["files"]["columns"] = [{"name": "never", "type": "double"}, {"name": "n", "type": "integer"}]

    def refused(self, key: int, number: int) -> Record:
        """See `Choosy.refused`: the number is a text."""
        sequence = SequenceInfo(0, 1_700_000_000_000_000 + number, key)
        return Record(Action.PUT, encode_row((("id", key),), (Column("n", str(number)),), sequence=sequence))


class Bucket:
    """A bucket of a store that speaks S3."""

    def __init__(self, store: S3Store, prefix: str, credentials: Path) -> None:
        self._store = store
        self._prefix = prefix
        _keep_keys(credentials, "id", "secret")
        place = {"url": f"s3://shop/{prefix}", "endpoint": store.url, "credentials": {"directory": str(credentials)}}
        settings = {"compression": "gzip", "maxFileBytes": 65_536, "maxFileSeconds": 1}
        self.section: Mapping[str, Any] = {"files": {**place, **settings}}

    async def stored(self) -> list[Stored]:
        """See `Destination.stored`."""
        objects = await asyncio.to_thread(self._store.records)
        mine = sorted(name for name in objects if name.startswith(self._prefix))
        return [stored_in_json(record) for name in mine for record in objects[name]]

    def fail(self, times: int) -> None:
        """See `Unreliable.fail`."""
        self._store.fail("PUT", times=times * (RETRIES_OF_OBSTORE + 1))


class Printed:
    """What a sink prints."""

    section: Mapping[str, Any] = {"stdout": {}}

    def __init__(self, capture: Any) -> None:
        self._capture = capture
        self._text = ""

    async def stored(self) -> list[Stored]:
        """See `Destination.stored`."""
        self._text += self._capture.readouterr().out
        return [stored_in_json(json.loads(line)) for line in self._text.splitlines()]


class PrintedToFile:
    """What a sink prints, where a file is the standard output: its lines stay, however many read them.

    Args:
        path: of the file.
    """

    section: Mapping[str, Any] = {"stdout": {}}

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def redirected(self) -> Iterator[None]:
        """Let the file be the standard output meanwhile; within a test, since pytest sets it for each of its phases."""
        with self._path.open("a") as file, redirect_stdout(file):
            yield

    async def stored(self) -> list[Stored]:
        """See `Destination.stored`; a line that is being written does not count."""
        *lines, _ = self._path.read_text().split("\n")
        return [stored_in_json(json.loads(line)) for line in lines]


@asynccontextmanager
async def _serving(take: Callable[[web.Request], Awaitable[web.Response]], path: str) -> AsyncIterator[str]:
    """Serve one path on a port of loopback; its endpoint."""
    application = web.Application(client_max_size=1 << 26)
    application.router.add_post(path, take)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _keep_keys(folder: Path, key_id: str, secret: str) -> None:
    folder.mkdir()
    (folder / "accessKeyId").write_text(key_id)
    (folder / "accessKeySecret").write_text(secret)


def _table(name: str) -> pb.CreateTableRequest:
    request = pb.CreateTableRequest()
    request.table_meta.table_name = name
    request.table_meta.primary_key.add(name="id", type=pb.INTEGER)
    request.reserved_throughput.capacity_unit.read = 0
    request.reserved_throughput.capacity_unit.write = 0
    request.table_options.time_to_live = -1
    request.table_options.max_versions = 1
    request.table_options.deviation_cell_version_in_sec = 100 * 365 * 86_400
    return request


def _of_row(body: bytes) -> Stored:
    row = decode_row(body)
    key, number = row.primary_key[0][1], row.columns[0].value
    assert isinstance(key, int)
    assert isinstance(number, int)
    return key, number


def _of_arrow(row: Mapping[str, Any]) -> Stored:
    if "n" in row:
        return row["key"]["id"], row["n"]
    return row["key"]["id"], next(cell["value"]["integer"] for cell in row["cells"] if cell["name"] == "n")


def _parquet_rows(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.ParquetFile(file).read().to_pylist()
    return rows
