"""A data directory that cannot be written any more: every place that tells the state of the emulator says so."""

from __future__ import annotations

import resource
from pathlib import Path

import aiohttp
import pytest

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.errors import ServiceError
from ots_tunnel.model import Action
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.transport.aio import AioTransport
from tests.support.emulator.emulator_scene import CREDENTIALS, create_table_request
from tests.support.programs.emulator_process import EmulatorProcess


async def test_a_full_disk_shows_in_health_state_controls_and_exit_code(tmp_path: Path) -> None:
    async with EmulatorProcess(tmp_path / "data") as process, aiohttp.ClientSession() as admin:
        transport = AioTransport(process.endpoint)
        await ServiceCaller(transport, "demo", CREDENTIALS).call(
            TABLE_OPERATIONS["CreateTable"], create_table_request("t")
        )
        client = TableClient(process.endpoint, "demo", CREDENTIALS, transport)
        async with admin.get(process.admin_url + "/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok\n")
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))

        row = encode_row((("pk", "1"),), [Column("v", "x" * 1_000_000)])
        with pytest.raises(ServiceError, match="OTSInternalServerError"):
            await client.batch_write("t", [RowChange(Action.PUT, row)])

        async with admin.get(process.admin_url + "/healthz") as answer:
            assert answer.status == 503
            failure = (await answer.text()).rstrip()
        assert failure.startswith(f"data directory {tmp_path / 'data'}: cannot be written: ")
        async with admin.get(process.admin_url + "/state") as answer:
            assert (await answer.json())["failure"] == failure
        async with admin.post(process.admin_url + "/clock", json={"advance": 1}) as answer:
            assert (answer.status, (await answer.json())["message"]) == (500, f"no more changes are taken: {failure}")
        await transport.close()
        assert await process.stop() == 1
