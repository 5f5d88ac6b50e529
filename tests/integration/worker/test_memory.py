"""Rows of 2 MiB, 16 channels and a slow sink: the worker holds no more than its budget allows."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow.parquet as pq
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.config import (
    ClientConfig,
    CredentialsConfig,
    FilesSinkConfig,
    HttpConfig,
    HttpSinkConfig,
    PythonSinkConfig,
    SinkConfig,
    TablestoreSinkConfig,
    TunnelConfig,
    WorkerConfig,
    dump_config,
)
from ots_tunnel.model import Action, ChannelType, TunnelId, TunnelType
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.sinks.table.sink import TablestoreSink
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel.verify.compare import compare_tables
from tests.support.emulator.emulator_scene import COPY, CREDENTIALS, TABLE, create_table_request
from tests.support.programs.emulator_process import EmulatorProcess
from tests.support.programs.processes import inherited_environment, module, unmeasured
from tests.support.waiting import until

MIB = 1 << 20
CHANNELS = 16
#: Rows there before the tunnel, and rows changed while it is followed.
BASE_ROWS, CHANGED_ROWS = 96, 32
#: Memory of a worker without records.
ALLOWANCE = 100_000_000
#: Seconds of one write of the sink; reads alone would be much faster.
SLOW = 0.3

#: The user's code of the sink `python`: looks at every column, and takes its time.
PROCESSOR = f"""
import time
from ots_tunnel.processor import SimpleProcessorFactory

def process(context, records):
    time.sleep({SLOW})
    with open(__file__ + ".delivered", "a") as delivered:
        for record in records:
            numbers = [column.value for column in record.columns if column.name == "n"]
            delivered.write(f"{{record.primary_key[0][1]}} {{numbers[0]}}\\n")

factory = SimpleProcessorFactory(process)
"""

Delivered = set[tuple[str, int]]


class Large:
    """A table of large rows, its tunnel, and a worker process on it."""

    def __init__(self, emulator: EmulatorProcess, folder: Path) -> None:
        self.emulator = emulator
        self.folder = folder
        self.tunnel_id = TunnelId("")
        self.written: Delivered = set()
        self._admin = aiohttp.ClientSession(emulator.admin_url)
        self._table = TableClient(emulator.endpoint, "demo", CREDENTIALS)
        self._tunnels = TunnelClient(emulator.endpoint, "demo", CREDENTIALS)
        self._caller = ServiceCaller(AioTransport(emulator.endpoint), "demo", CREDENTIALS)
        self._process: Process | None = None

    async def prepare(self) -> None:
        await self.post("/partitions", instance="demo", table=TABLE, count=CHANNELS)
        for table in (TABLE, COPY):
            await self._caller.call(TABLE_OPERATIONS["CreateTable"], create_table_request(table))
        await self.put(BASE_ROWS, 1)
        self.tunnel_id = await self._tunnels.create_tunnel(TABLE, "t", TunnelType.BaseAndStream)
        await until(self._has_all_channels, 20, "the tunnel has its channels")

    async def _has_all_channels(self) -> bool:
        return len((await self.tunnel())["channels"]) >= 2 * CHANNELS

    async def put(self, count: int, number: int) -> None:
        """Write rows of 2 MiB, one per request."""
        for row in range(count):
            key = f"k{row:04}"
            columns = (Column("large", "x" * (2 * MIB - 100)), Column("n", number))
            outcomes = await self._table.batch_write(
                TABLE, [RowChange(Action.PUT, encode_row((("pk", key),), columns))]
            )
            assert outcomes[0].code is None, outcomes
            self.written.add((key, number))

    async def start_worker(self, sink: SinkConfig, budget: int) -> None:
        keys = self.folder / "keys"
        keys.mkdir()
        (keys / "accessKeyId").write_text("test-id")
        (keys / "accessKeySecret").write_text("test-secret")
        config = WorkerConfig(
            source=TunnelConfig(
                endpoint=self.emulator.endpoint,
                instance="demo",
                credentials=CredentialsConfig(directory=keys),
                table=TABLE,
                tunnel_name="t",
                tunnel_id=self.tunnel_id,
            ),
            sink=sink,
            client=ClientConfig(
                heartbeat_interval_seconds=5,
                heartbeat_timeout_seconds=20,
                checkpoint_interval_seconds=1,
                memory_budget_bytes=budget,
            ),
            http=HttpConfig(port=0),
        )
        path = self.folder / "worker.yaml"
        path.write_text(dump_config(config))
        with (self.folder / "worker.log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *module("ots_tunnel", "run", "--config", str(path)),
                env=unmeasured(inherited_environment(self.folder)),
                stderr=log,
            )

    async def followed(self) -> None:
        """Wait until all base data is copied."""
        async with asyncio.timeout(120):
            while not all(channel["finished"] for channel in await self._base_channels()):
                assert self._process is not None
                assert self._process.returncode is None
                await asyncio.sleep(0.2)

    async def consumed(self) -> None:
        """Wait until the stored checkpoints are behind everything."""
        now_ns = time.time_ns()

        async def is_consumed() -> bool:
            return bool((await self.tunnel())["consumePoint"] > now_ns)

        await until(is_consumed, 60, "everything is consumed", pause=0.2)

    async def equal(self) -> bool:
        """Whether the other table has the same rows."""
        return (await compare_tables(self._table, TABLE, self._table, COPY)).equal

    def peak_bytes(self) -> int:
        """The highest resident memory of the worker so far."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024

    def table_sink(self) -> SinkConfig:
        """The other table."""
        keys = CredentialsConfig(directory=self.folder / "keys")
        table = TablestoreSinkConfig(endpoint=self.emulator.endpoint, instance="demo", credentials=keys, table=COPY)
        return SinkConfig(tablestore=table)

    async def leave(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            return await self._process.wait()

    async def tunnel(self) -> dict[str, Any]:
        async with self._admin.get("/state") as answer:
            (demo,) = (await answer.json())["instances"]
        (found,) = demo["tunnels"]
        return found

    async def post(self, path: str, **document: object) -> None:
        async with self._admin.post(path, json=document) as answer:
            assert answer.status == 200, await answer.text()

    async def _base_channels(self) -> list[dict[str, Any]]:
        return [channel for channel in (await self.tunnel())["channels"] if channel["type"] == ChannelType.BASE]

    async def close(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        await self._admin.close()
        for client in (self._table, self._tunnels, self._caller):
            await client.close()


@pytest.fixture
async def large(tmp_path: Path) -> AsyncIterator[Large]:
    # About as much base data as fits 16 channels.
    async with EmulatorProcess(None, "--base-split-bytes", str(BASE_ROWS * 2 * MIB // CHANNELS)) as emulator:
        large = Large(emulator, tmp_path)
        try:
            await large.prepare()
            yield large
        finally:
            await large.close()


@asynccontextmanager
async def web_service() -> AsyncIterator[tuple[str, Delivered]]:
    """A slow web service: its address, and the received records."""
    received: Delivered = set()

    async def take(request: web.Request) -> web.Response:
        for event in json.loads(await request.read()):
            numbers = {column["name"]: column["value"] for column in event["data"]["columns"]}
            received.add((event["data"]["key"]["pk"], numbers["n"]))
        await asyncio.sleep(SLOW)
        return web.Response(status=204)

    application = web.Application(client_max_size=64 * MIB)
    application.router.add_post("/events", take)
    async with TestServer(application) as server:
        yield str(server.make_url("/events")), received


async def work(large: Large, sink: SinkConfig, budget: int) -> int:
    """Let a worker move the base data and then changes; return its highest memory."""
    await large.start_worker(sink, budget)
    await large.followed()
    await large.put(CHANGED_ROWS, 2)
    await large.consumed()
    peak = large.peak_bytes()
    assert await large.leave() == 0
    print(f"{peak / 1e6:.0f} MB at a budget of {budget / 1e6:.0f} MB")
    return peak


LEAST, MORE = 32 * MIB, pytest.param(128 * MIB, marks=[pytest.mark.long, pytest.mark.lasts(60)])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("budget", [LEAST, MORE])
@pytest.mark.lasts(50)
@pytest.mark.unmeasured
async def test_memory_stays_within_the_budget_beside_a_slow_web_service(large: Large, budget: int) -> None:
    async with web_service() as (url, received):
        peak = await work(large, SinkConfig(http=HttpSinkConfig(url=url)), budget)

    assert received == large.written
    assert peak < budget + ALLOWANCE


@pytest.mark.timeout(300)
@pytest.mark.long
@pytest.mark.unmeasured
@pytest.mark.lasts(60)
@pytest.mark.parametrize("budget", [LEAST, MORE])
async def test_memory_stays_within_the_budget_beside_a_slow_processor(large: Large, budget: int) -> None:
    module = large.folder / "slow_processor.py"
    module.write_text(PROCESSOR)

    peak = await work(large, SinkConfig(python=PythonSinkConfig(factory="slow_processor:factory")), budget)

    assert delivered_to(module) == large.written
    assert peak < budget + ALLOWANCE


def delivered_to(module: Path) -> Delivered:
    """Keys and numbers that the user's code wrote to its file."""
    lines = Path(f"{module}.delivered").read_text().splitlines()
    return {(key, int(number)) for key, number in map(str.split, lines)}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("budget", [LEAST, MORE])
@pytest.mark.lasts(27)
@pytest.mark.unmeasured
async def test_memory_stays_within_the_budget_beside_a_slow_table(large: Large, budget: int) -> None:
    await large.post("/faults", operation="BatchWriteRow", latency=SLOW / 2)

    peak = await work(large, large.table_sink(), budget)

    assert await large.equal()
    assert peak < budget + ALLOWANCE


@pytest.mark.long
@pytest.mark.unmeasured
@pytest.mark.lasts(60)
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("form", "budget"), [("JsonLines", 64 * MIB), ("Parquet", 128 * MIB)])
async def test_memory_stays_within_the_budget_beside_files(large: Large, form: Any, budget: int) -> None:
    # pandas is installed with PySpark, the worker's image has none, and Arrow imports it if it is installed.
    (large.folder / "pandas.py").write_text("raise ImportError")
    files = FilesSinkConfig(url=f"file://{large.folder}/files", format=form, max_file_seconds=2)

    peak = await work(large, SinkConfig(files=files), budget)

    assert rows_in(large.folder / "files") == large.written
    assert peak < budget + ALLOWANCE


def rows_in(folder: Path) -> Delivered:
    """The records in files of either format."""
    found: Delivered = set()
    for path in folder.rglob("*.jsonl"):
        for line in path.read_text().splitlines():
            found.add(_row(json.loads(line)["key"], json.loads(line)["columns"], lambda cell: cell["value"]))
    for path in folder.rglob("*.parquet"):
        for row in pq.read_table(path).to_pylist():
            found.add(_row(row["key"], row["cells"], lambda cell: cell["value"]["integer"]))
    return found


def _row(key: dict[str, str], cells: list[dict[str, Any]], number: Callable[[dict[str, Any]], int]) -> tuple[str, int]:
    return key["pk"], next(number(cell) for cell in cells if cell["name"] == "n")


@pytest.mark.timeout(300)
@pytest.mark.lasts(12)
@pytest.mark.unmeasured
async def test_a_page_larger_than_the_budget_is_moved_alone(large: Large) -> None:
    page, least = 12 * MIB, 16 * MIB
    await large.post("/settings", page_bytes=page)

    peak = await work(large, large.table_sink(), least)

    assert await large.equal()
    assert peak < TablestoreSink.cost.of(page + 2 * MIB, 0) + ALLOWANCE
