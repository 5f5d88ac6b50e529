"""When a run of a measurement is over."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from ots_emulator import Emulator, Settings
from ots_tunnel.model import FINISHED, ChannelStatus, Checkpoint, TunnelType
from ots_tunnel.tables import AsyncTableAdmin
from tests.bench.bench_scene import BenchScene, Tunnel
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene


async def test_a_channel_that_was_terminated_without_its_last_checkpoint_is_over() -> None:
    scene = EmulatorScene(Emulator(settings=Settings(init_delay=0.01)))
    await scene.create_table(partitions=2)
    await scene.put(["a", "b"])  # a partition appears with its row
    await scene.create_tunnel(TunnelType.Stream)
    bench = BenchScene("", "", scene.client, scene.table, cast(AsyncTableAdmin, None))
    tunnel = Tunnel(TABLE, "t", scene.tunnel_id)
    client_id = await scene.client.connect(tunnel.tunnel_id, 60, "go")
    first, second = await scene.client.heartbeat(tunnel.tunnel_id, client_id, ())
    assert not await bench.is_finished(tunnel)

    await scene.client.checkpoint(tunnel.tunnel_id, client_id, first.channel_id, Checkpoint(FINISHED, 1))
    assert not await bench.is_finished(tunnel)

    ended = replace(second, version=second.version + 1, status=ChannelStatus.TERMINATED)
    await scene.client.heartbeat(tunnel.tunnel_id, client_id, (first, ended))
    assert await bench.is_finished(tunnel)
