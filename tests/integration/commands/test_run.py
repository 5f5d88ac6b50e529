"""`ots-tunnel run` as a process: its status pages, and its drain."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from ots_tunnel.model import TunnelType
from tests.support.emulator.emulator_scene import EmulatorScene, twenty_rows
from tests.support.programs.run_process import document, ended, line_with, start
from tests.support.waiting import until


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    async with twenty_rows(TunnelType.BaseAndStream) as scene:
        yield scene


async def test_serves_its_state_and_drains_on_sigterm(scene: EmulatorScene, tmp_path: Path) -> None:
    path = document(scene, tmp_path)
    process = await start(path)
    url = (await line_with(process, "started"))["url"]
    async with asyncio.timeout(30):
        async with aiohttp.ClientSession(url) as http:
            await until(lambda: is_ready(http), 30, "ready")
            assert await _status(http, "/healthz") == 200
            while True:
                async with http.get("/channels") as answer:
                    channels = await answer.json()
                if channels["rowsTotal"] == 20:
                    break
                await asyncio.sleep(0.05)
            async with http.get("/metrics") as answer:
                metrics = await answer.text()
    process.send_signal(signal.SIGTERM)
    left = await ended(process, path)

    assert channels["tunnelId"] == scene.tunnel_id
    assert 'ots_tunnel_records_total{action="put",channel_type="BaseData",tunnel="t"} 20.0' in metrics
    assert left.code == 0
    assert left.lines[-1]["action"] == "stopped"
    assert scene.emulator.tunnel("demo", scene.tunnel_id).clients == {}


async def is_ready(http: aiohttp.ClientSession) -> bool:
    """Probe readiness as a kubelet does."""
    return await _status(http, "/readyz") == 200


async def _status(http: aiohttp.ClientSession, path: str) -> int:
    async with http.get(path) as answer:
        return answer.status
