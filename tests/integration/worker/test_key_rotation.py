"""Keys that are replaced while a worker runs: no restart, no new client, nothing lost."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.credentials import FileCredentials
from ots_tunnel.model import TunnelType
from ots_tunnel.transport.inprocess import InProcessTransport
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.emulator.emulator_scene import FAST, EmulatorScene
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

PAIRS = {"test-id": "test-secret", "old": "stale", "new": "fresh"}


def write(folder: Path, key: str) -> None:
    (folder / "accessKeyId").write_text(key)
    (folder / "accessKeySecret").write_text(PAIRS[key])


async def test_the_next_call_is_signed_with_the_new_pair(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    scene = EmulatorScene(Emulator({"demo": PAIRS}, settings=Settings(init_delay=0.0)))
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    write(tmp_path, "old")
    credentials = FileCredentials(tmp_path, interval=0.0)
    client = TunnelClient("http://emulator", "demo", credentials, InProcessTransport(scene.emulator.handle))
    sink = RecordingSink()
    # beside other tests a process may stand still for the second after which the service forgets a client of FAST
    worker = TunnelWorker(client, sink, replace(FAST, tunnel_id=scene.tunnel_id, timeout=10))

    async with scene.running(worker):
        await scene.put(["k"])
        await until(lambda: len(sink.written) == 1, what="the first change")
        before = worker.status.client_id, worker.status.last_heartbeat
        write(tmp_path, "new")
        del scene.emulator.instances["demo"].keys["old"]
        await scene.put(["k"], [2])
        await until(lambda: len(sink.written) == 2, 30, "the change after it; an idle channel is read every 6.25 s")
        await until(lambda: worker.status.last_heartbeat != before[1], what="a heartbeat after it")

    assert sink.written == [("k", 1), ("k", 2)]
    assert worker.status.client_id == before[0]
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
