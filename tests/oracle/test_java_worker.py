"""The vendor's unmodified Java worker on our emulator, alone and beside the Go worker."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ots_emulator.server.faults import FaultRule
from ots_tunnel.model import ChannelStatus, ChannelType, Checkpoint, ClientId, Marker
from ots_tunnel.protocol.http.message import HttpRequest
from ots_tunnel.protocol.plainbuffer.codec import decode_rows
from tests.oracle.consumers import Consumers, consumers_of
from tests.oracle.counters import (
    HAND_OVER,
    KEYS,
    check_in_order_per_hold,
    check_nothing_skipped,
    check_once_in_order,
    delivered,
    everything_stored,
    shares,
    stored_checkpoint,
    streaming,
    writing,
)
from tests.support.emulator.emulator_scene import COPY, TABLE, EmulatorScene
from tests.support.programs.java_program import quickest_command
from tests.support.waiting import until

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(600)]  # the first test also builds it

#: Quick: the heartbeats below what the SDK's setter allows (see Worker.java), the others at their least.
BEAT = {"heartbeat": "1s", "timeout": "6s", "idle": "200ms", "checkpoint": "200ms"}


@pytest.fixture
async def consumers(scene: EmulatorScene, java_worker: Path, tmp_path: Path) -> AsyncIterator[Consumers]:
    async with consumers_of(scene, java_worker, tmp_path) as consumers:
        yield consumers


@pytest.mark.parametrize("compressed", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.lasts(8)
@pytest.mark.unmeasured
async def test_tunnel_checklist_11_java_reads_base_data_splits_and_a_merge_exactly(
    scene: EmulatorScene, consumers: Consumers, compressed: bool
) -> None:
    await scene.create_table(partitions=3)
    await scene.put([f"row{number:05}" for number in range(2000)])
    await scene.create_tunnel()
    kinds = [channel.channel_type for channel in (await scene.describe()).channels]
    theirs = await consumers.theirs(**BEAT, compress=str(compressed).lower())

    await until(lambda: len(consumers.delivered.arrivals) >= 100, what="base data under way")
    scene.emulator.split("demo", TABLE)
    await delivered(consumers, scene)
    await until(scene.is_streaming, 30, "all base data is done")
    await scene.put(KEYS, range(2, 5))
    scene.emulator.split("demo", TABLE)
    await scene.put(KEYS, range(5, 8))
    scene.emulator.merge("demo", TABLE)
    await scene.put(KEYS, range(8, 10))
    await delivered(consumers, scene)
    await everything_stored(scene)
    await theirs.leave()

    check_once_in_order(consumers, scene)
    assert kinds.count(ChannelType.BASE) >= 3
    assert theirs.summary["rows"] == 2000 + 200 * 8
    channels = scene.channels().values()
    assert {channel.status for channel in channels} == {ChannelStatus.CLOSE, ChannelStatus.TERMINATED}
    assert sum(channel.status is ChannelStatus.CLOSE for channel in channels) == 4
    assert not scene.owners(), "it makes its shutdown call"


@pytest.mark.long
@pytest.mark.lasts(30)
@pytest.mark.parametrize(
    "settings", [{"reads": 5}, {"parallel": 1}], ids=["five pages a round", "one channel at a time"]
)
async def test_java_reads_exactly_however_it_is_set(
    scene: EmulatorScene, consumers: Consumers, settings: dict[str, int]
) -> None:
    await scene.create_table(partitions=3)
    await scene.put([f"row{number:05}" for number in range(3000)])
    await scene.create_tunnel()
    theirs = await consumers.theirs(**BEAT, **settings)
    await delivered(consumers, scene)
    await scene.put(KEYS, range(1, 6))
    await delivered(consumers, scene)
    await everything_stored(scene)
    await theirs.leave()

    check_once_in_order(consumers, scene)


@pytest.mark.lasts(16)
@pytest.mark.unmeasured
async def test_tunnel_checklist_11_java_and_go_share_a_tunnel_and_hand_channels_over(
    scene: EmulatorScene, consumers: Consumers, java_worker: Path, go_worker: Path
) -> None:
    await scene.create_table(partitions=4)
    await scene.put(KEYS)
    await scene.create_tunnel()

    java = await consumers.theirs("java", **BEAT)
    await until(lambda: shares(scene) == [4] and len(consumers.delivered.arrivals) == len(KEYS), HAND_OVER, "stream")
    async with writing(scene):
        await until(lambda: len(consumers.delivered.by("java")) > 1000, HAND_OVER, "Java delivers the stream")
        go = await consumers.theirs("go", program=go_worker)
        await until(lambda: shares(scene) == [2, 2], HAND_OVER, "half each")
        await until(lambda: len(consumers.delivered.by("go")) > 500, HAND_OVER, "Go delivers")
        scene.emulator.split("demo", TABLE)
        await until(lambda: shares(scene) == [2, 3], HAND_OVER, "the split is over")
    # Neither waits for its callback or its last checkpoint when it ends (docs/protocol.md 5.9): not under load.
    await everything_stored(scene)
    await java.leave()
    await until(lambda: shares(scene) == [5], HAND_OVER, "all is Go's")
    async with writing(scene):
        await until(lambda: len(consumers.delivered.by("go")) > 2000, HAND_OVER, "Go delivers alone")
        again = await consumers.theirs("java again", **BEAT)
        await until(lambda: shares(scene) == [2, 3], HAND_OVER, "shared again")
        await until(lambda: len(consumers.delivered.by("java again")) > 500, HAND_OVER, "Java delivers again")
    await everything_stored(scene)
    await go.leave()
    await until(lambda: shares(scene) == [5], HAND_OVER, "all is Java's")
    await scene.put(KEYS, [max(number for _, number in scene.everything()) + 1])
    await delivered(consumers, scene)
    await everything_stored(scene)
    await again.leave()

    # Java closes without a checkpoint (docs/protocol.md 6.2, J14): its records are delivered again, in order.
    assert set(consumers.delivered.records()) == set(scene.everything())
    check_in_order_per_hold(consumers)
    check_nothing_skipped(consumers)
    changes = {pair for names in consumers.delivered.owners().values() for pair in itertools.pairwise(names)}
    assert {("java", "go"), ("go", "java again")} <= changes


async def test_tunnel_checklist_11_java_skips_a_single_410(scene: EmulatorScene, consumers: Consumers) -> None:
    await streaming(scene)
    theirs = await consumers.theirs(**BEAT)
    await scene.put(KEYS, range(2, 4))
    await delivered(consumers, scene)
    before = scene.owners()

    scene.emulator.faults.add(FaultRule(operation="Heartbeat", code="OTSResourceGone", count=1))
    await until(lambda: len(scene.emulator.faults) == 0, what="the 410")
    await scene.put(KEYS, range(4, 6))
    await delivered(consumers, scene)
    await everything_stored(scene)
    assert scene.owners() == before
    await theirs.leave()

    check_once_in_order(consumers, scene)


@pytest.mark.long
@pytest.mark.lasts(30)
async def test_java_connects_again_when_its_client_is_forgotten(scene: EmulatorScene, consumers: Consumers) -> None:
    await streaming(scene)
    theirs = await consumers.theirs(**{**BEAT, "timeout": "2s"})
    await scene.put(KEYS, range(2, 4))
    await delivered(consumers, scene)
    await everything_stored(scene)
    before = set(scene.owners())

    scene.emulator.expire_clients("demo", scene.tunnel_id)
    # It waits for its own timeout, and then up to 10 s.
    await until(lambda: bool(scene.owners()) and not before & set(scene.owners()), 90, "a new client")
    await scene.put(KEYS, range(4, 6))
    await delivered(consumers, scene)
    await everything_stored(scene)
    await theirs.leave()

    assert set(consumers.delivered.records()) == set(scene.everything())
    check_in_order_per_hold(consumers)


@pytest.mark.parametrize("code", ["OTSParameterInvalid", "OTSTunnelExpired"])
async def test_tunnel_checklist_11_java_halts_after_a_shutdown_call(
    scene: EmulatorScene, consumers: Consumers, code: str
) -> None:
    await streaming(scene)
    theirs = await consumers.theirs(**BEAT)
    await scene.put(KEYS)
    await delivered(consumers, scene)
    assert scene.owners()

    scene.emulator.faults.add(FaultRule(operation="Heartbeat", code=code, count=1))

    assert await theirs.wait() == 1
    assert "it halted after RequestId: " in theirs.errors
    assert f"Code: {code}" in theirs.errors
    assert not scene.owners(), "it makes a shutdown call"


async def test_tunnel_checklist_11_java_ends_when_the_tunnel_has_expired(
    scene: EmulatorScene, consumers: Consumers
) -> None:
    await streaming(scene)
    theirs = await consumers.theirs(**BEAT)
    await scene.put(KEYS)
    await delivered(consumers, scene)

    scene.emulator.expire_tunnel("demo", scene.tunnel_id)

    assert await theirs.wait() == 1
    assert "Code: OTSTunnelExpired" in theirs.errors


async def test_tunnel_checklist_11_java_synchronises_after_a_foreign_checkpoint(
    scene: EmulatorScene, consumers: Consumers
) -> None:
    await streaming(scene, partitions=1)
    theirs = await consumers.theirs(**BEAT)
    await scene.put(KEYS, range(2, 4))
    await delivered(consumers, scene)
    await everything_stored(scene)
    (channel_id,) = scene.channels()

    stored = await stored_checkpoint(scene, channel_id)
    ids = (scene.tunnel_id, ClientId("another"), channel_id)
    await scene.client.checkpoint(*ids, Checkpoint(stored.token, stored.sequence_number + 100))
    await scene.put(KEYS, range(4, 6))
    await delivered(consumers, scene)
    await everything_stored(scene)
    await theirs.leave()

    check_once_in_order(consumers, scene)
    after = await stored_checkpoint(scene, channel_id)
    assert after.sequence_number > stored.sequence_number + 100
    page = await scene.client.read_records(*ids, after.token)
    assert page.records == []


async def test_java_outlasts_transient_errors_without_repeating_anything(
    scene: EmulatorScene, consumers: Consumers
) -> None:
    await streaming(scene)
    for rule in (
        FaultRule(operation="GetCheckpoint", code="OTSTunnelServerUnavailable", count=2),
        FaultRule(operation="GetCheckpoint", drop_response=True, count=1),
        FaultRule(operation="ReadRecords", code="OTSTunnelServerUnavailable", count=3),
        FaultRule(operation="ReadRecords", drop_response=True, count=2),
        FaultRule(operation="Heartbeat", code="OTSTunnelServerUnavailable", count=2),
    ):
        scene.emulator.faults.add(rule)
    theirs = await consumers.theirs(**BEAT)
    await scene.put(KEYS, range(2, 4))
    await delivered(consumers, scene)
    scene.emulator.faults.add(FaultRule(operation="Checkpoint", drop_response=True, count=1))
    scene.emulator.faults.add(FaultRule(operation="Heartbeat", drop_response=True, count=1))
    await scene.put(KEYS, range(4, 6))
    await delivered(consumers, scene)
    await everything_stored(scene)
    await until(lambda: len(scene.emulator.faults) == 0, what="every rule used")
    await theirs.leave()

    check_once_in_order(consumers, scene)


async def test_tunnel_checklist_11_java_fails_without_request_ids(scene: EmulatorScene, consumers: Consumers) -> None:
    calls: Counter[str] = Counter()

    async def handle(request: web.Request) -> web.Response:
        calls[request.path] += 1
        answer = await scene.emulator.handle(HttpRequest(request.path, request.headers, await request.read()))
        headers = {name: value for name, value in answer.headers.items() if name != "x-ots-requestid"}
        return web.Response(status=answer.status, headers=headers, body=answer.body)

    await streaming(scene)
    proxy = web.Application()
    proxy.router.add_post("/{path:.*}", handle)
    async with TestServer(proxy) as server:
        await consumers.theirs(endpoint=str(server.make_url("")), **BEAT)
        # It reconnects with pauses of up to 10 s.
        await until(lambda: calls["/tunnel/connect"] >= 2, 90, "a second attempt")

    assert set(calls) == {"/tunnel/connect"}
    assert not scene.owners()


async def test_the_java_program_copies_from_a_tunnel_found_by_name_under_v4(
    scene: EmulatorScene, java_worker: Path, tmp_path: Path
) -> None:
    await scene.create_table()
    await scene.create_table(table=COPY)
    await scene.put([f"row{number:05}" for number in range(1000)])
    await scene.create_tunnel()
    output = tmp_path / "summary.jsonl"
    flags = {"table": TABLE, "copy_to": COPY, "rows": 1000, "region": "cn-hangzhou", "sts_token": "token"}
    command = quickest_command(java_worker, scene.emulator.endpoint, "t", "copy", output=output, **flags)

    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(90):
        _, errors = await process.communicate()

    assert process.returncode == 0, errors
    assert json.loads(output.read_text())["rows"] == 1000
    everything = ((("pk", Marker.INF_MIN),), (("pk", Marker.INF_MAX),))
    source, copy = [await scene.table.get_range(table, *everything, max_versions=1) for table in (TABLE, COPY)]
    assert copy.rows == source.rows
    assert len(decode_rows(copy.rows)) == 1000
