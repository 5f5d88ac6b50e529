"""A process gives the memory of deleted tables back to the system."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import aiohttp
import pytest

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.transport.aio import AioTransport
from tests.support.emulator.emulator_scene import CREDENTIALS, create_table_request
from tests.support.programs.emulator_process import EmulatorProcess

TABLES, BATCHES, VALUE = 6, 40, "x" * 1000
#: Bytes that the database keeps for its next pages (the setting cache_size of its connection).
DATABASE_CACHE = 64 << 20
#: Bytes of values that are written.
WRITTEN = TABLES * BATCHES * 200 * len(VALUE)


def resident(process: EmulatorProcess) -> int:
    """Bytes of memory of the process."""
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096


def batch(first: int) -> list[RowChange]:
    return [
        RowChange(Action.PUT, encode_row((("pk", f"{number:06}"),), [Column("v", VALUE)]))
        for number in range(first, first + 200)
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("durable", [False, True], ids=["memory", "durable"])
@pytest.mark.lasts(13)
@pytest.mark.unmeasured
async def test_a_suite_that_deletes_its_tables_leaves_a_small_process(tmp_path: Path, durable: bool) -> None:
    async with EmulatorProcess(tmp_path / "data" if durable else None) as process:
        transport = AioTransport(process.endpoint)
        caller = ServiceCaller(transport, "demo", CREDENTIALS)
        client = TableClient(process.endpoint, "demo", CREDENTIALS, transport)
        before = resident(process)
        for table in map("t{}".format, range(TABLES)):
            request = create_table_request(table)
            request.stream_spec.enable_stream, request.stream_spec.expiration_time = True, 24
            await caller.call(TABLE_OPERATIONS["CreateTable"], request)
            for number in range(BATCHES):
                outcomes = await client.batch_write(table, batch(number * 200))
                assert all(outcome.code is None for outcome in outcomes)
        full = resident(process)
        for table in map("t{}".format, range(TABLES)):
            await caller.call(TABLE_OPERATIONS["DeleteTable"], pb.DeleteTableRequest(table_name=table))
        after = resident(process)
        await transport.close()

    # Every row was in its table and in the log.
    assert full - before > 2 * WRITTEN
    assert after - before < WRITTEN / 2 + (DATABASE_CACHE if durable else 0)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("durable", [False, True], ids=["memory", "durable"])
@pytest.mark.lasts(11)
@pytest.mark.unmeasured
async def test_a_stream_that_nobody_reads_leaves_a_small_process(tmp_path: Path, durable: bool) -> None:
    async with EmulatorProcess(tmp_path / "data" if durable else None) as process, aiohttp.ClientSession() as admin:
        transport = AioTransport(process.endpoint)
        caller = ServiceCaller(transport, "demo", CREDENTIALS)
        client = TableClient(process.endpoint, "demo", CREDENTIALS, transport)
        request = create_table_request("t")
        request.stream_spec.enable_stream, request.stream_spec.expiration_time = True, 24
        await caller.call(TABLE_OPERATIONS["CreateTable"], request)
        await client.batch_write("t", batch(0))
        before = resident(process)
        for _ in range(TABLES * BATCHES):
            # The same rows again, so that only the log grows.
            await client.batch_write("t", batch(0))
        full = resident(process)
        async with admin.post(process.admin_url + "/clock", json={"advance": 25 * 3600}) as answer:
            assert answer.status == 200
        later = ServiceCaller(transport, "demo", CREDENTIALS, clock=lambda: time.time() + 25 * 3600)
        await later.call(TABLE_OPERATIONS["ListTable"], pb.ListTableRequest())
        after = resident(process)
        await transport.close()

    assert full - before > WRITTEN
    assert after - before < WRITTEN / 4 + (DATABASE_CACHE if durable else 0)
