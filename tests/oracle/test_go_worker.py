"""The vendor's unmodified Go worker on our emulator, alone and beside ours."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ots_emulator.server.faults import FaultRule
from ots_tunnel.model import ChannelStatus, ChannelType, Checkpoint, ClientId
from ots_tunnel.protocol.http.message import HttpRequest
from tests.oracle.consumers import Consumers, check_monotonic, consumers_of
from tests.oracle.counters import (
    HAND_OVER,
    KEYS,
    check_once_in_order,
    delivered,
    everything_stored,
    held_by,
    shares,
    stored_checkpoint,
    streaming,
    writing,
)
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene
from tests.support.waiting import until

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(600)]  # the first test also builds it


@pytest.fixture
async def consumers(scene: EmulatorScene, go_worker: Path, tmp_path: Path) -> AsyncIterator[Consumers]:
    async with consumers_of(scene, go_worker, tmp_path) as consumers:
        yield consumers


async def test_tunnel_checklist_11_go_reads_base_data_splits_and_a_merge_exactly(
    scene: EmulatorScene, consumers: Consumers
) -> None:
    await scene.create_table(partitions=3)
    await scene.put([f"row{number:05}" for number in range(2000)])
    await scene.create_tunnel()
    kinds = [channel.channel_type for channel in (await scene.describe()).channels]
    theirs = await consumers.theirs()

    await until(lambda: len(consumers.delivered.arrivals) >= 100, what="base data under way")
    scene.emulator.split("demo", TABLE)
    await delivered(consumers, scene)
    await until(scene.is_streaming, 90, "all base data is done")
    await scene.put(KEYS, range(2, 5))
    scene.emulator.split("demo", TABLE)
    await scene.put(KEYS, range(5, 8))
    scene.emulator.merge("demo", TABLE)
    await scene.put(KEYS, range(8, 10))
    await delivered(consumers, scene)
    await until(lambda: ChannelStatus.WAIT not in statuses(scene), what="no parent is left")
    await theirs.leave()

    check_once_in_order(consumers, scene)
    assert kinds.count(ChannelType.BASE) >= 3
    assert theirs.summary["rows"] == 2000 + 200 * 8
    assert set(statuses(scene)) == {ChannelStatus.CLOSE, ChannelStatus.TERMINATED}
    assert statuses(scene).count(ChannelStatus.CLOSE) == 4


def statuses(scene: EmulatorScene) -> list[ChannelStatus]:
    """Status of every channel."""
    return [channel.status for channel in scene.channels().values()]


@pytest.mark.lasts(11)
@pytest.mark.unmeasured
async def test_tunnel_checklist_11_go_workers_share_a_tunnel_and_hand_channels_over(
    scene: EmulatorScene, consumers: Consumers
) -> None:
    await scene.create_table(partitions=4)
    await scene.put(KEYS)
    await scene.create_tunnel()

    first = await consumers.theirs("first")
    await until(lambda: shares(scene) == [4] and len(consumers.delivered.arrivals) == len(KEYS), HAND_OVER, "stream")
    async with writing(scene):
        await until(lambda: len(consumers.delivered.by("first")) > 1000, HAND_OVER, "the first delivers")
        second = await consumers.theirs("second")
        await until(lambda: shares(scene) == [2, 2], HAND_OVER, "half each")
        await until(lambda: len(consumers.delivered.by("second")) > 500, HAND_OVER, "the second delivers")
        scene.emulator.split("demo", TABLE)
        await until(lambda: shares(scene) == [2, 3], HAND_OVER, "the split is over")
    await everything_stored(scene)
    await first.leave()
    await until(lambda: shares(scene) == [5], HAND_OVER, "all is the second's")
    async with writing(scene):
        await until(lambda: len(consumers.delivered.by("second")) > 2000, HAND_OVER, "the second delivers alone")
        third = await consumers.theirs("third")
        await until(lambda: len(consumers.delivered.by("third")) > 500, HAND_OVER, "the third delivers")
    await delivered(consumers, scene)
    await everything_stored(scene)
    await second.leave()
    await third.leave()

    check_once_in_order(consumers, scene)
    changes = {pair for names in consumers.delivered.owners().values() for pair in itertools.pairwise(names)}
    assert {("first", "second"), ("second", "third")} <= changes


async def test_tunnel_checklist_11_go_connects_again_after_a_single_410(
    scene: EmulatorScene, consumers: Consumers
) -> None:
    await streaming(scene)
    theirs = await consumers.theirs()
    await scene.put(KEYS, range(2, 5))
    await delivered(consumers, scene)
    before = set(scene.owners())

    scene.emulator.faults.add(FaultRule(operation="Heartbeat", code="OTSResourceGone", count=1))
    # It waits up to 10 s, and makes no shutdown call: its old client has to time out.
    await until(lambda: bool(scene.owners()) and not before & set(scene.owners()), 90, "a new client")
    await scene.put(KEYS, range(5, 8))
    await delivered(consumers, scene)
    await theirs.leave()

    assert set(consumers.delivered.records()) == set(scene.everything())
    for session in consumers.delivered.sessions():
        check_monotonic(session)


@pytest.mark.parametrize("code", ["OTSParameterInvalid", "OTSTunnelExpired", "OTSPermissionDenied"])
async def test_tunnel_checklist_11_go_ends_on_a_permanent_code(
    scene: EmulatorScene, consumers: Consumers, code: str
) -> None:
    await streaming(scene)
    theirs = await consumers.theirs()
    await scene.put(KEYS)
    await delivered(consumers, scene)

    scene.emulator.faults.add(FaultRule(operation="Heartbeat", code=code, count=1))

    assert await theirs.wait() == 1
    assert "the worker ended: RequestId: " in theirs.errors
    assert f"Code: {code}" in theirs.errors
    assert scene.owners(), "it makes no shutdown call: its client has to time out"


async def test_go_outlasts_transient_errors_without_repeating_anything(
    scene: EmulatorScene, consumers: Consumers
) -> None:
    await streaming(scene)
    for rule in (
        FaultRule(operation="Connect", code="OTSTunnelServerUnavailable", count=1),
        FaultRule(operation="GetCheckpoint", drop_response=True, count=1),
        FaultRule(operation="ReadRecords", code="OTSTunnelServerUnavailable", count=3),
        FaultRule(operation="ReadRecords", drop_response=True, count=2),
        FaultRule(operation="Heartbeat", code="OTSTunnelServerUnavailable", count=2),
    ):
        scene.emulator.faults.add(rule)
    theirs = await consumers.theirs()
    await scene.put(KEYS, range(2, 5))
    await delivered(consumers, scene)
    # The vendor repeats a checkpoint whose answer was lost; its number is used up by then.
    scene.emulator.faults.add(FaultRule(operation="Checkpoint", drop_response=True, count=1))
    scene.emulator.faults.add(FaultRule(operation="Heartbeat", drop_response=True, count=1))
    await scene.put(KEYS, range(5, 8))
    await delivered(consumers, scene)
    await everything_stored(scene)
    assert len(scene.emulator.faults) == 0, "a rule was not used"
    await theirs.leave()

    check_once_in_order(consumers, scene)


async def test_tunnel_checklist_11_go_works_without_request_ids(scene: EmulatorScene, consumers: Consumers) -> None:
    async def handle(request: web.Request) -> web.Response:
        answer = await scene.emulator.handle(HttpRequest(request.path, request.headers, await request.read()))
        headers = {name: value for name, value in answer.headers.items() if name != "x-ots-requestid"}
        return web.Response(status=answer.status, headers=headers, body=answer.body)

    await streaming(scene)
    proxy = web.Application()
    proxy.router.add_post("/{path:.*}", handle)
    async with TestServer(proxy) as server:
        theirs = await consumers.theirs(endpoint=str(server.make_url("")))
        await scene.put(KEYS, range(2, 4))
        await delivered(consumers, scene)
        await theirs.leave()

    check_once_in_order(consumers, scene)


async def test_the_program_finds_a_tunnel_by_name_and_writes_into_a_file(
    scene: EmulatorScene, go_worker: Path, tmp_path: Path
) -> None:
    await scene.create_table()
    await scene.put(KEYS)
    await scene.create_tunnel()
    output = tmp_path / "delivered.jsonl"
    flags = {
        "endpoint": scene.emulator.endpoint,
        "instance": "demo",
        "key-id": "test-id",
        "table": TABLE,
        "tunnel": "t",
    }
    ends = {"rows": len(KEYS), "duration": "30s", "delay": "1ms", "output": output}

    process = await asyncio.create_subprocess_exec(
        str(go_worker),
        "worker",
        *(f"-{name}={value}" for name, value in {**flags, **ends}.items()),
        env={**os.environ, "OTS_KEY_SECRET": "test-secret"},
    )
    async with asyncio.timeout(90):
        assert await process.wait() == 0

    *batches, summary = [json.loads(line) for line in output.read_text().splitlines()]
    assert sorted(record["key"] for batch in batches for record in batch["records"]) == [[key] for key in KEYS]
    assert summary["rows"] == len(KEYS)


@pytest.mark.parametrize("whose", ["theirs", "ours"])
async def test_tunnel_checklist_11_go_and_ours_notice_a_foreign_checkpoint(
    scene: EmulatorScene, consumers: Consumers, whose: str
) -> None:
    await streaming(scene, partitions=1)
    worker = await (consumers.theirs() if whose == "theirs" else consumers.ours())
    await scene.put(KEYS, range(2, 5))
    await delivered(consumers, scene)
    (channel_id,) = scene.channels()

    stored = await stored_checkpoint(scene, channel_id)
    ids = (scene.tunnel_id, ClientId("another"), channel_id)
    await scene.client.checkpoint(*ids, Checkpoint(stored.token, stored.sequence_number + 100))
    await scene.put(KEYS, range(5, 8))
    await delivered(consumers, scene)
    await everything_stored(scene)
    await worker.leave()

    assert set(consumers.delivered.records()) == set(scene.everything())
    after = await stored_checkpoint(scene, channel_id)
    assert after.sequence_number > stored.sequence_number + 100
    page = await scene.client.read_records(*ids, after.token)
    assert page.records == []


@pytest.mark.parametrize(("end", "code"), [("deleted", 10), ("expired", 13)])
async def test_tunnel_checklist_11_go_and_ours_end_when_the_tunnel_is_gone(
    scene: EmulatorScene, consumers: Consumers, end: str, code: int
) -> None:
    await streaming(scene)
    theirs, ours = await consumers.theirs(), await consumers.ours()
    await until(lambda: held_by(scene, "ours") == held_by(scene, "theirs") == 1, HAND_OVER, "one channel each")

    if end == "deleted":
        await scene.client.delete_tunnel(TABLE, "t")
    else:
        scene.emulator.expire_tunnel("demo", scene.tunnel_id)

    assert await theirs.wait() == 1
    assert "the worker ended: " in theirs.errors
    assert await ours.wait() == code
