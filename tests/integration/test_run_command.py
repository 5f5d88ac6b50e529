"""`ots-tunnel run` as a process: what it serves, how it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from ots_emulator import Emulator
from ots_tunnel.model import TunnelType
from tests.integration.scene import TABLE, Scene

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with Emulator() as emulator:
        scene = Scene(emulator)
        await scene.create_table()
        await scene.put([f"k{number}" for number in range(20)])
        await scene.create_tunnel(TunnelType.BaseAndStream)
        yield scene


def document(scene: Scene, directory: Path, sink: str = "count: {}", tunnel_id: str = "") -> Path:
    (directory / "accessKeyId").write_text("test-id")
    (directory / "accessKeySecret").write_text("test-secret")
    path = directory / "worker.yaml"
    path.write_text(
        f"""
source:
  endpoint: {scene.emulator.endpoint}
  instance: demo
  table: {TABLE}
  tunnelName: t
  tunnelId: {tunnel_id or scene.tunnel_id}
  credentials: {{directory: {directory}}}
sink: {{{sink}}}
client: {{heartbeatIntervalSeconds: 5, heartbeatTimeoutSeconds: 15}}
http: {{port: 0}}
"""
    )
    return path


async def start(path: Path, *more: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ots_tunnel",
        "run",
        "--config",
        str(path),
        *more,
        stderr=PIPE,
        env={"PYTHONPATH": str(ROOT / "worker")},
    )


async def ended(process: Process, seconds: float = 30) -> tuple[int | None, list[dict[str, object]]]:
    """Exit code and log lines."""
    async with asyncio.timeout(seconds):
        _, output = await process.communicate()
    return process.returncode, [json.loads(line) for line in output.splitlines()]


async def test_serves_its_state_and_drains_on_sigterm(scene: Scene, tmp_path: Path) -> None:
    process = await start(document(scene, tmp_path))
    assert process.stderr is not None
    async with asyncio.timeout(30):
        url = ""
        while not url:
            url = json.loads(await process.stderr.readline()).get("url", "")
        async with aiohttp.ClientSession(url) as http:
            while (await _status(http, "/readyz")) != 200:  # noqa: ASYNC110 - asked as a kubelet asks
                await asyncio.sleep(0.05)
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
    code, lines = await ended(process)

    assert channels["tunnelId"] == scene.tunnel_id
    assert 'ots_tunnel_records_total{action="put",channel_type="BaseData",tunnel="t"} 20.0' in metrics
    assert code == 0
    assert lines[-1]["action"] == "stopped"
    assert scene.emulator._tunnel("demo", scene.tunnel_id).clients == {}


async def test_a_missing_tunnel_ends_with_code_10(scene: Scene, tmp_path: Path) -> None:
    code, lines = await ended(await start(document(scene, tmp_path, tunnel_id="no-such-tunnel")))

    assert code == 10
    assert lines[-1]["action"] == "terminal_error"
    assert "OTSParameterInvalid" in str(lines[-1]["error"])


async def test_a_missing_destination_ends_with_code_4(scene: Scene, tmp_path: Path) -> None:
    sink = (
        f"tablestore: {{endpoint: {scene.emulator.endpoint}, instance: demo, table: nowhere, "
        f"credentials: {{directory: {tmp_path}}}}}"
    )
    code, lines = await ended(await start(document(scene, tmp_path, sink)))

    assert code == 4
    assert "nowhere" in str(lines[-1]["error"])


async def test_missing_credentials_end_with_code_2_and_name_the_file(scene: Scene, tmp_path: Path) -> None:
    path = document(scene, tmp_path)
    (tmp_path / "accessKeySecret").unlink()

    code, lines = await ended(await start(path))

    assert code == 2
    assert "accessKeySecret" in str(lines[-1]["error"])
    assert "test-secret" not in str(lines)


async def _status(http: aiohttp.ClientSession, path: str) -> int:
    async with http.get(path) as answer:
        return answer.status
