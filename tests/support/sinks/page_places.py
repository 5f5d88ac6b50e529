"""Places for the pages of `page_program`: each takes everything and keeps nothing in memory."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from ots_emulator import Emulator
from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.config.files import MOST_COLUMNS
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import Credentials
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.transport.inprocess import InProcessTransport
from tests.support.emulator.emulator_scene import create_table_request

#: Every built-in sink, the files once for each form.
SINKS = ("http", "tablestore", "JsonLines", "Parquet", "typed", "kafka", "stdout", "python", "count")
#: The columns of typed files, as many as a document may declare: those of all kinds of pages.
COLUMNS = [
    {"name": "v", "type": "integer"},
    {"name": "text", "type": "string"},
    *({"name": f"c{number}", "type": "boolean"} for number in range(MOST_COLUMNS - 2)),
]

PROCESSOR = """
from ots_tunnel.processor import SimpleProcessorFactory

def process(context, records):
    for record in records:
        assert record.columns

factory = SimpleProcessorFactory(process)
"""

#: The broker that librdkafka brings, in a process of its own; it ends with its standard input.
BROKER = """
import sys
from confluent_kafka import Producer
producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
(broker,) = producer.list_topics("out", 10).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""


@asynccontextmanager
async def section_of(sink: str, folder: Path, answer_seconds: float = 0.0) -> AsyncIterator[dict[str, Any]]:
    """The section of a document for one of `SINKS`, whose place is there inside of the block.

    Args:
        folder: for files.
        answer_seconds: that the places of `http` and `tablestore` take for an answer.
    """
    async with AsyncExitStack() as stack:
        match sink:
            case "http":

                async def take(request: web.Request) -> web.Response:
                    await request.read()
                    await asyncio.sleep(answer_seconds)
                    return web.Response(status=204)

                url = await stack.enter_async_context(_served(take, "/in"))
                yield {"http": {"url": f"{url}/in"}}
            case "tablestore":
                table = _Table(await stack.enter_async_context(Emulator()), answer_seconds)
                await table.prepare()
                url = await stack.enter_async_context(_served(table.answer, "/{operation}"))
                keys = folder / "keys"
                keys.mkdir(exist_ok=True)
                (keys / "accessKeyId").write_text("test-id")
                (keys / "accessKeySecret").write_text("test-secret")
                place = {"endpoint": url, "instance": "demo", "table": "copy"}
                yield {"tablestore": {**place, "credentials": {"directory": str(keys)}}}
            case "JsonLines" | "Parquet":
                yield {"files": {"url": (folder / "out").as_uri(), "format": sink, "maxFileSeconds": 2}}
            case "typed":
                place: dict[str, Any] = {"url": (folder / "out").as_uri(), "format": "Parquet", "maxFileSeconds": 2}
                yield {"files": {**place, "columns": COLUMNS}}
            case "kafka":
                broker = await stack.enter_async_context(_broker())
                yield {"kafka": {"bootstrapServers": [broker], "topic": "out", "securityProtocol": "PLAINTEXT"}}
            case "python":
                (folder / "reads_everything.py").write_text(PROCESSOR)
                yield {"python": {"factory": "reads_everything:factory"}}
            case _:
                yield {sink: {}}


class _Table:
    """A table that stores every row and keeps none."""

    def __init__(self, emulator: Emulator, answer_seconds: float) -> None:
        self._emulator = emulator
        self._answer_seconds = answer_seconds

    async def prepare(self) -> None:
        credentials = static_credentials(Credentials("test-id", "test-secret"))
        caller = ServiceCaller(InProcessTransport(self._emulator.handle), "demo", credentials)
        for name in ("orders", "copy"):
            await caller.call(TABLE_OPERATIONS["CreateTable"], create_table_request(name))

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.path != "/BatchWriteRow":
            asked = HttpRequest(request.path, dict(request.headers), body)
            found = await self._emulator.handle(asked)
            return web.Response(status=found.status, headers=found.headers, body=found.body)
        await asyncio.sleep(self._answer_seconds)
        answer = pb.BatchWriteRowResponse()
        rows = answer.tables.add(table_name="copy").rows
        for _ in pb.BatchWriteRowRequest.FromString(body).tables[0].rows:
            row = rows.add(is_ok=True)
            row.consumed.capacity_unit.read, row.consumed.capacity_unit.write = 0, 1
        return web.Response(body=answer.SerializeToString())


@asynccontextmanager
async def _served(handler: Any, path: str) -> AsyncIterator[str]:
    """A handler on a port of loopback; its address."""
    application = web.Application(client_max_size=64 << 20)
    application.router.add_post(path, handler)
    async with TestServer(application) as server:
        yield str(server.make_url("")).rstrip("/")


@asynccontextmanager
async def _broker() -> AsyncIterator[str]:
    """A broker; its address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BROKER, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield (await asyncio.wait_for(process.stdout.readline(), 30)).decode().strip()
    finally:
        process.kill()
        await process.wait()
