"""A run says that it waits for the channels of a run that is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.model import TunnelType
from tests.support.commands.replicate_scene import compared, create_source, in_seconds, job
from tests.support.verify_scene import INSTANCE, KEYS, SOURCE, VerifyScene
from tests.support.waiting import until


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[VerifyScene]:
    with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        yield VerifyScene(emulator, tmp_path)


async def leave_a_dead_client(scene: VerifyScene) -> str:
    """Connect a client that gets the channel and then sends no heartbeat any more, as a killed run does."""
    client = TunnelClient(scene.emulator.endpoint, INSTANCE, KEYS)
    try:
        tunnel = await client.create_tunnel(SOURCE, "copy", TunnelType.BaseAndStream)
        dead = await client.connect(tunnel, 12, "replicate-dead")

        async def holds_a_channel() -> bool:
            return bool(await client.heartbeat(tunnel, dead, ()))

        await until(holds_a_channel, 30, "the client holds a channel")
    finally:
        await client.close()
    return dead


@pytest.mark.lasts(19)
async def test_the_channels_of_a_dead_run_are_waited_for_aloud(scene: VerifyScene) -> None:
    await asyncio.to_thread(create_source, scene, 20)
    dead = await leave_a_dead_client(scene)

    said: list[str] = []
    copied = await asyncio.wait_for(job(scene, in_seconds(1), said).run(), 60)

    assert copied.complete
    assert (await compared(scene)).equal
    notes = [line for line in said if "note: client" in line]
    assert len(notes) == 1
    assert f"client {dead} holds 1 channel: it shares the work, or its run is gone" in notes[0]
