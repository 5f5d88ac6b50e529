"""Every built-in sink stays within the budget with pages of many small cells as with pages of large ones.

Kafka is left out: its broker is not part of these tests, and its queue comes on top of the budget (docs/sinks.md).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ots_emulator import Emulator
from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import Credentials
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.transport.inprocess import InProcessTransport
from tests.support.emulator.emulator_scene import create_table_request
from tests.support.programs.page_program import KINDS
from tests.support.programs.processes import inherited_environment, module, unmeasured

BUDGET = 64 << 20
#: Memory of a worker without records.
ALLOWANCE = 100_000_000
CHANNELS, PAGES = 8, 2
#: Seconds of an answer of the destination.
SLOW = 0.1

PROCESSOR = """
from ots_tunnel.processor import SimpleProcessorFactory

def process(context, records):
    for record in records:
        assert record.columns

factory = SimpleProcessorFactory(process)
"""


def _cases() -> list[Any]:
    sinks = ["http", "tablestore", "JsonLines", "Parquet", "stdout", "python", "count"]
    usual = {("http", "wide"), ("tablestore", "wide"), ("stdout", "wide"), ("python", "wide"), ("count", "narrow")}
    return [
        pytest.param(sink, kind, marks=() if (sink, kind) in usual else (pytest.mark.long,))
        for sink in sinks
        for kind in KINDS
    ]


@pytest.fixture
async def section(sink: str, tmp_path: Path) -> AsyncIterator[dict[str, Any]]:
    async with AsyncExitStack() as stack:
        match sink:
            case "http":
                url = await stack.enter_async_context(_served(_take, "/in"))
                yield {"http": {"url": f"{url}/in"}}
            case "tablestore":
                table = _Table(await stack.enter_async_context(Emulator()))
                await table.prepare()
                url = await stack.enter_async_context(_served(table.answer, "/{operation}"))
                keys = tmp_path / "keys"
                keys.mkdir()
                (keys / "accessKeyId").write_text("test-id")
                (keys / "accessKeySecret").write_text("test-secret")
                place = {"endpoint": url, "instance": "demo", "table": "copy"}
                yield {"tablestore": {**place, "credentials": {"directory": str(keys)}}}
            case "JsonLines" | "Parquet":
                yield {"files": {"url": (tmp_path / "out").as_uri(), "format": sink, "maxFileSeconds": 2}}
            case "python":
                (tmp_path / "reads_everything.py").write_text(PROCESSOR)
                yield {"python": {"factory": "reads_everything:factory"}}
            case _:
                yield {sink: {}}


class _Table:
    """A table that stores every row and keeps none."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    async def prepare(self) -> None:
        credentials = static_credentials(Credentials("test-id", "test-secret"))
        caller = ServiceCaller(InProcessTransport(self._emulator.handle), "demo", credentials)
        await caller.call(TABLE_OPERATIONS["CreateTable"], create_table_request("copy"))

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.path != "/BatchWriteRow":
            asked = HttpRequest(request.path, dict(request.headers), body)
            found = await self._emulator.handle(asked)
            return web.Response(status=found.status, headers=found.headers, body=found.body)
        await asyncio.sleep(SLOW)
        answer = pb.BatchWriteRowResponse()
        rows = answer.tables.add(table_name="copy").rows
        for _ in pb.BatchWriteRowRequest.FromString(body).tables[0].rows:
            row = rows.add(is_ok=True)
            row.consumed.capacity_unit.read, row.consumed.capacity_unit.write = 0, 1
        return web.Response(body=answer.SerializeToString())


async def _take(request: web.Request) -> web.Response:
    await request.read()
    await asyncio.sleep(SLOW)
    return web.Response(status=204)


class _served:
    """A handler on a port of loopback; its address."""

    def __init__(self, handler: Any, path: str) -> None:
        application = web.Application(client_max_size=64 << 20)
        application.router.add_post(path, handler)
        self._server = TestServer(application)

    async def __aenter__(self) -> str:
        await self._server.start_server()
        return str(self._server.make_url("")).rstrip("/")

    async def __aexit__(self, *error: object) -> None:
        await self._server.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("sink", "kind"), _cases())
async def test_memory_stays_within_the_budget(sink: str, kind: str, section: dict[str, Any], tmp_path: Path) -> None:
    # pandas is installed with PySpark, the worker's image has none, and Arrow imports it if it is installed.
    (tmp_path / "pandas.py").write_text("raise ImportError")
    order = {"sink": section, "kind": kind, "budget": BUDGET, "channels": CHANNELS, "pages": PAGES}
    order["folder"] = str(tmp_path)
    program = await asyncio.create_subprocess_exec(
        *module("tests.support.programs.page_program", json.dumps(order)),
        env=unmeasured(inherited_environment(tmp_path)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(program.communicate(), 280)
    assert program.returncode == 0, said.decode()
    found = json.loads(said.splitlines()[-1])
    print(f"{sink} {kind}: {found['peak'] / 1e6:.0f} MB, {found['longest'] * 1e3:.0f} ms")

    assert found["peak"] < BUDGET + ALLOWANCE
