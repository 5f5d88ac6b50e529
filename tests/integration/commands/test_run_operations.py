"""`ots-tunnel run` in operation: status pages, log lines, and signals."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from ots_emulator.server.faults import FaultRule
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import TunnelType
from tests.support.emulator.emulator_scene import EmulatorScene, twenty_rows
from tests.support.metric_pages import WORKER, labelled
from tests.support.programs.run_process import Left, document, ended, line_with, start
from tests.support.waiting import until


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    async with twenty_rows(TunnelType.BaseAndStream) as scene:
        yield scene


@asynccontextmanager
async def page_reader(process: Process) -> AsyncIterator[aiohttp.ClientSession]:
    """Reads the status pages of a worker; everything inside the block has a deadline."""
    url = (await line_with(process, "started"))["url"]
    async with asyncio.timeout(30), aiohttp.ClientSession(url) as pages:
        yield pages


async def status(pages: aiohttp.ClientSession, path: str) -> int:
    async with pages.get(path) as answer:
        return answer.status


async def channels(pages: aiohttp.ClientSession) -> dict[str, Any]:
    async with pages.get("/channels") as answer:
        assert answer.content_type == "application/json"
        found: dict[str, Any] = await answer.json()
        return found


async def ready(pages: aiohttp.ClientSession) -> bool:
    return await status(pages, "/readyz") == 200


async def streams(pages: aiohttp.ClientSession) -> bool:
    return "Stream" in {channel["type"] for channel in (await channels(pages))["channels"]}


async def has_rows(pages: aiohttp.ClientSession, rows: int) -> bool:
    return bool((await channels(pages))["rowsTotal"] >= rows)


async def stopped(process: Process, path: Path, code: int = 0) -> Left:
    process.send_signal(signal.SIGTERM)
    left = await ended(process, path)
    assert left.code == code, left
    assert bool(left.termination_message) == bool(code)
    return left


async def test_it_is_alive_at_once_and_ready_after_the_first_heartbeat_answer(
    scene: EmulatorScene, tmp_path: Path
) -> None:
    scene.emulator.faults.add(FaultRule("Heartbeat", code="OTSTunnelServerUnavailable", status=503))
    path = document(scene, tmp_path)
    process = await start(path)

    async with page_reader(process) as pages:
        await line_with(process, "heartbeat_failed")
        assert (await status(pages, "/healthz"), await status(pages, "/readyz")) == (200, 503)
        assert (await channels(pages))["lastHeartbeatTime"] is None
        scene.emulator.faults.clear()
        await until(lambda: ready(pages))
        assert (await channels(pages))["lastHeartbeatTime"] is not None
    await stopped(process, path)


async def test_the_metrics_page_has_every_name_with_its_labels(scene: EmulatorScene, tmp_path: Path) -> None:
    # one call is repeated, one record is left out, one cell is not wanted
    scene.emulator.faults.add(FaultRule("ReadRecords", count=1, code="OTSTunnelServerUnavailable", status=503))
    path = document(
        scene,
        tmp_path,
        delivery__filter={"keyPrefix": {"pk": "k1"}},
        delivery__columns={"exclude": ["n"]},
        client__checkpointIntervalSeconds=0.1,
    )
    process = await start(path)

    async with page_reader(process) as pages:
        await until(lambda: streams(pages))
        await scene.put(["k1", "k2"])
        while True:
            async with pages.get("/metrics") as answer:
                families = {family.name: family for family in text_string_to_metric_families(await answer.text())}
            if "Stream" in {sample.labels.get("channel_type") for sample in families["ots_tunnel_records"].samples}:
                break
            await asyncio.sleep(0.05)
    await stopped(process, path)

    # a hand-over needs a second worker
    assert families["ots_tunnel_rebalances"].samples == []
    expected = {name: (kind, labels | {"tunnel"}) for name, (kind, labels) in WORKER.items()}
    assert labelled(families.values()) == expected | {"ots_tunnel_rebalances": ("counter", set())}
    samples = [sample for family in families.values() for sample in family.samples]
    assert {sample.labels["tunnel"] for sample in samples} == {"t"}
    values = {(each.name, *each.labels.values()): each.value for each in samples}
    assert values["ots_tunnel_retries_total", "OTSTunnelServerUnavailable", "ReadRecords", "t"] == 1
    assert values["ots_tunnel_omitted_records_total", "filter", "t"] == 10
    assert values["ots_tunnel_omitted_cells_total", "columns", "t"] >= 11
    assert values["ots_tunnel_refused_records_total", "skip", "t"] == 0


async def test_the_log_is_json_with_known_actions_and_no_rows(scene: EmulatorScene, tmp_path: Path) -> None:
    await scene.put(["a-row-that-no-log-may-show"])
    path = document(scene, tmp_path)
    process = await start(path, "--log-level", "debug")

    async with page_reader(process) as pages:
        await until(lambda: has_rows(pages, 21))
    left = await stopped(process, path)

    assert [line["action"] for line in left.lines if "action" in line][-1] == "stopped"
    for line in left.lines:
        assert list(line)[:4] == ["time", "level", "logger", "message"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
        known = LogAction(line["action"]).keys if line["logger"].startswith("ots_tunnel") else line
        assert set(line) - {"time", "level", "logger", "message", "action", "left_out"} <= set(known)
    assert "no-log-may-show" not in str(left.lines)
    assert "test-secret" not in str(left.lines)


class Hanging:
    """A web service that takes a batch and never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listen inside the block."""
        runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        try:
            yield
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        self.asked.set()
        await asyncio.Event().wait()
        return web.Response()


async def test_sigterm_drains_within_its_time_though_the_sink_hangs(scene: EmulatorScene, tmp_path: Path) -> None:
    service = Hanging()
    async with service.serving():
        path = document(scene, tmp_path, f"http: {{url: '{service.url}'}}", client__drainSeconds=2)
        process = await start(path)
        async with asyncio.timeout(30):
            await service.asked.wait()
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        left = await ended(process, path)
        took = time.monotonic() - began

    assert took < 2 + 15, "the time of the drain, of giving up the client, and of the end of a process; not of the sink"
    # at its limit the drain gives up the write, and may still hand the channel back
    assert (left.code, bool(left.termination_message)) in ((0, False), (5, True)), left
    assert [line["action"] for line in left.lines if line.get("action") in ("draining", "stopped")] == [
        "draining",
        "stopped",
    ]
    assert left.lines[-1]["rows"] == 0


async def test_a_second_sigterm_closes_at_once(scene: EmulatorScene, tmp_path: Path) -> None:
    service = Hanging()
    async with service.serving():
        path = document(scene, tmp_path, f"http: {{url: '{service.url}'}}", client__drainSeconds=60)
        process = await start(path)
        async with asyncio.timeout(30):
            await service.asked.wait()
        process.send_signal(signal.SIGTERM)
        await line_with(process, "draining")
        began = time.monotonic()
        left = await stopped(process, path, 143)
        took = time.monotonic() - began

    assert took < 20, "not the time of the drain"
    assert "second signal" in left.termination_message
    assert "closing_at_once" in {line.get("action") for line in left.lines}


async def test_sigterm_ends_it_while_the_service_does_not_answer(scene: EmulatorScene, tmp_path: Path) -> None:
    scene.emulator.faults.add(FaultRule("DescribeTunnel", latency=50))
    path = document(scene, tmp_path)
    process = await start(path)
    await line_with(process, "started")
    began = time.monotonic()
    await stopped(process, path)

    assert time.monotonic() - began < 20, "before the answer comes"
