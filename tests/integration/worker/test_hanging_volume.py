"""A volume that hangs holds up its channels, and neither the heartbeat nor the end of the worker."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.model import ChannelType, TunnelType
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.sinks.files import FilesSink
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.json_bytes import json_lines
from ots_tunnel.transport import aio
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.emulator.emulator_scene import CREDENTIALS, EmulatorScene
from tests.support.waiting import until

KEYS = [f"k{number:03}" for number in range(400)]
#: Heartbeat timeout, seconds: beside other tests a process may stand still for some of them.
TIMEOUT = 10
#: Heartbeats while a volume hangs; a heartbeat that the volume holds up is not answered before that ends.
BEATS = 8


class Volume:
    """A volume whose calls can be made to hang."""

    def __init__(self) -> None:
        self._answers = threading.Event()
        self._hanging: frozenset[str] = frozenset()
        #: Calls that have hung.
        self.hung = 0
        self.answer()

    def hang(self, *names: str) -> None:
        self._hanging = frozenset(names)
        self._answers.clear()

    def answer(self) -> None:
        self._answers.set()

    def passing(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, which hangs while the volume does."""

        def pass_on(*arguments: Any, **options: Any) -> Any:
            if name in self._hanging and not self._answers.is_set():
                self.hung += 1
                self._answers.wait(30)
            return call(*arguments, **options)

        return pass_on


@pytest.fixture
def volume(monkeypatch: pytest.MonkeyPatch) -> Iterator[Volume]:
    """The volume of the test's folder."""
    volume = Volume()
    here = sys.modules[__name__]
    calls = {"create": (JsonLines, "create"), "write": (here, "json_lines"), "unlink": (Path, "unlink")}
    for name, (place, attribute) in {**calls, "fsync": (os, "fsync")}.items():
        monkeypatch.setattr(place, attribute, volume.passing(name, getattr(place, attribute)))
    yield volume
    volume.answer()


def streams(worker: TunnelWorker) -> list[str]:
    """The channels of the stream that read."""
    return [
        channel_id
        for channel_id, view in worker.status.channels.items()
        if view.progress.channel_type is ChannelType.STREAM and view.progress.caught_up_time
    ]


@asynccontextmanager
async def running_worker(folder: Path) -> AsyncIterator[tuple[EmulatorScene, TunnelWorker, TunnelClient]]:
    """A worker whose eight channels of the stream are open."""
    async with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        scene = EmulatorScene(emulator)
        await scene.create_table(partitions=8)
        await scene.put(KEYS)
        await scene.create_tunnel(TunnelType.BaseAndStream)
        endpoint = emulator.endpoint.replace("127.0.0.1", "localhost")
        files = FileSettings(FolderStore(folder), JsonLines(json_lines), 1, 0.1, Backoff(0.01, 2, 0.1, 0))
        client = TunnelClient(endpoint, "demo", CREDENTIALS)
        worker = TunnelWorker(client, FilesSink(scene.tunnel_id, files), scene.settings(interval=0.3, timeout=TIMEOUT))
        running = asyncio.create_task(worker.run())
        await until(
            lambda: len(streams(worker)) == 8, 60, "existing rows are done, and every channel of the stream is open"
        )
        yield scene, worker, client
        worker.drain()
        await asyncio.wait_for(running, 60)
        await client.close()


async def test_the_client_is_kept_while_a_volume_hangs(
    volume: Volume, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aio, "KEEP_ALIVE", 0.0)  # every heartbeat looks the name up
    async with running_worker(tmp_path) as (scene, worker, _):
        first = worker.status.client_id

        volume.hang("fsync")
        await scene.put(KEYS, [2])
        await until(lambda: volume.hung >= 8, what="the calls of every channel hang")
        for beat in range(BEATS):
            last = worker.status.last_heartbeat
            await until(lambda last=last: worker.status.last_heartbeat != last, 20, f"heartbeat {beat + 1} is answered")
            assert worker.status.client_id == first

        volume.answer()
        await until(lambda: sum(1 for _ in tmp_path.rglob("*.jsonl")) >= 8, what="the files appear")


@pytest.mark.parametrize("hanging", [("create",), ("write", "unlink"), ("fsync", "unlink")], ids="-".join)
async def test_a_lost_client_is_replaced_while_a_volume_hangs(
    volume: Volume, tmp_path: Path, hanging: tuple[str, ...]
) -> None:
    async with running_worker(tmp_path) as (scene, worker, client):
        first = worker.status.client_id
        assert first is not None
        volume.hang(*hanging)
        await scene.put(KEYS, [2])
        await until(lambda: volume.hung >= 8, what="the calls of every channel hang")
        await client.shutdown(scene.tunnel_id, first, timeout=5)
        await until(lambda: worker.status.client_id not in (None, first), 25, "the worker has connected again")

        volume.answer()
        await until(lambda: sum(1 for _ in tmp_path.rglob("*.jsonl")) >= 8, 60, "the files appear")
