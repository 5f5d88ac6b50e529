"""The destination is replaced by a table with another key while a worker runs: no policy passes its refusals over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ots_emulator import Emulator, Settings
from ots_emulator.server.faults import FaultRule
from ots_tunnel.config import WorkerConfig
from ots_tunnel.console.exit_codes import exit_code
from ots_tunnel.errors import SinkRejected, WrongDestination
from ots_tunnel.model import TunnelType
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.sinks import Sink
from ots_tunnel.sinks.choice import open_sink
from tests.support.emulator.emulator_scene import COPY, TABLE, EmulatorScene, create_table_request
from tests.support.waiting import until


def document(scene: EmulatorScene, folder: Path, policy: str) -> WorkerConfig:
    """A worker's document from the scene's table to its copy."""
    (folder / "accessKeyId").write_text("test-id")
    (folder / "accessKeySecret").write_text("test-secret")
    place = {"endpoint": scene.emulator.endpoint, "instance": "demo", "credentials": {"directory": str(folder)}}
    delivery: dict[str, Any] = {"onPermanentError": policy}
    if policy == "DeadLetter":
        delivery["deadLetter"] = {"files": {"url": f"file://{folder}/letters"}}
    return WorkerConfig.model_validate(
        {
            "source": {**place, "table": TABLE, "tunnelName": "t", "tunnelId": str(scene.tunnel_id)},
            "sink": {"tablestore": {**place, "table": COPY}},
            "delivery": delivery,
        }
    )


async def replace_copy(scene: EmulatorScene, key: str) -> None:
    """Delete the copy and create a table of its name with another key column."""
    await scene.caller.call(TABLE_OPERATIONS["DeleteTable"], pb.DeleteTableRequest(table_name=COPY))
    request = create_table_request(COPY)
    request.table_meta.primary_key[0].name = key
    await scene.caller.call(TABLE_OPERATIONS["CreateTable"], request)


async def copied_rows(scene: EmulatorScene) -> int:
    """Records that checkpoints have passed."""
    return sum(channel.rows for channel in (await scene.describe()).channels)


@contextlib.asynccontextmanager
async def copying(folder: Path, policy: str) -> AsyncIterator[tuple[EmulatorScene, Sink, asyncio.Task[None]]]:
    """A worker that has copied a row, and goes on."""
    async with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        scene = EmulatorScene(emulator)
        await scene.create_table()
        await scene.create_table(table=COPY)
        await scene.create_tunnel(TunnelType.Stream)
        sink = open_sink(document(scene, folder, policy))
        running = asyncio.create_task(scene.worker(sink).run())
        await scene.put(["k1"])
        await until(lambda: copied_rows(scene))
        yield scene, sink, running


@pytest.mark.parametrize("policy", ["Fail", "Skip", "DeadLetter"])
async def test_another_key_ends_the_worker_whatever_the_policy_says(tmp_path: Path, policy: str) -> None:
    async with copying(tmp_path, policy) as (scene, sink, running):
        await replace_copy(scene, "other")
        await scene.put([f"k{number}" for number in range(300)], [3])

        with pytest.raises(SinkRejected) as caught:
            await asyncio.wait_for(running, 20)

        assert exit_code(caught.value) == 4
        assert "OTSInvalidPK" in str(caught.value)
        if policy != "Fail":
            assert isinstance(caught.value, WrongDestination)
            assert "primary key: found other STRING, needed pk STRING" in str(caught.value)
        assert await copied_rows(scene) == 1
        tally = sink.tally()
        assert (tally.records_skipped, tally.records_dead_lettered) == (0, 0)


@pytest.mark.parametrize("policy", ["Skip", "DeadLetter"])
async def test_a_refused_row_is_not_passed_over_while_the_destination_cannot_be_described(
    tmp_path: Path, policy: str
) -> None:
    async with copying(tmp_path, policy) as (scene, sink, running):
        await replace_copy(scene, "other")
        scene.emulator.add_fault(FaultRule("DescribeTable", code="OTSNoPermissionAccess"))
        await scene.put(["k2"])

        with pytest.raises(SinkRejected, match="OTSNoPermissionAccess"):
            await asyncio.wait_for(running, 20)
        assert (sink.tally().records_skipped, sink.tally().records_dead_lettered) == (0, 0)
