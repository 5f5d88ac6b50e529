"""A volume that hangs holds up its channels, and neither the heartbeat nor the end of the worker."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.model import ChannelType, TunnelType
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.sinks.files import FilesSink
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.json_record import json_form
from ots_tunnel.transport import aio
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.emulator.emulator_scene import CREDENTIALS, EmulatorScene
from tests.support.waiting import until

KEYS = [f"k{number:03}" for number in range(400)]


@pytest.fixture
def volume(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """While the event is not set, every fsync hangs."""
    answers, real = threading.Event(), os.fsync

    def fsync(descriptor: int) -> None:
        answers.wait(30)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    answers.set()
    yield answers
    answers.set()


def streams(worker: TunnelWorker) -> list[str]:
    """The channels of the stream that read."""
    return [
        channel_id
        for channel_id, view in worker.status.channels.items()
        if view.progress.channel_type is ChannelType.STREAM and view.progress.caught_up_time
    ]


async def test_the_client_is_kept_while_a_volume_hangs(
    volume: threading.Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aio, "KEEP_ALIVE", 0.0)  # every heartbeat looks the name up
    async with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        scene = EmulatorScene(emulator)
        await scene.create_table(partitions=8)
        await scene.put(KEYS)
        await scene.create_tunnel(TunnelType.BaseAndStream)
        endpoint = emulator.endpoint.replace("127.0.0.1", "localhost")
        files = FileSettings(FolderStore(tmp_path), JsonLines(json_form), 1, 0.1, Backoff(0.01, 2, 0.1, 0))
        client = TunnelClient(endpoint, "demo", CREDENTIALS)
        worker = TunnelWorker(client, FilesSink(scene.tunnel_id, files), scene.settings(interval=0.3, timeout=2))
        running = asyncio.create_task(worker.run())
        await until(
            lambda: len(streams(worker)) == 8, 20, "existing rows are done, and every channel of the stream is open"
        )
        first = worker.status.client_id

        volume.clear()
        await scene.put(KEYS, [2])
        hangs_until = time.monotonic() + 4  # twice the timeout
        while time.monotonic() < hangs_until:
            assert worker.status.client_id == first
            assert worker.status.last_heartbeat is not None
            assert worker.status.wall() - worker.status.last_heartbeat < 1.5
            await asyncio.sleep(0.1)

        volume.set()
        await until(lambda: sum(1 for _ in tmp_path.rglob("*.jsonl")) >= 8, what="the files appear")
        worker.drain()
        await asyncio.wait_for(running, 10)
        await client.close()
