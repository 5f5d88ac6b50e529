"""An empty success that is not the service's, such as a load balancer's, is no answer.

The service's time is the loop's.
"""

from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.errors import ConnectionLost
from ots_tunnel.model import TunnelType
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from tests.support.emulator.emulator_scene import TABLE
from tests.support.emulator.virtual_scene import KEYS, VirtualScene, streaming
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime


def checkpointed(scene: VirtualScene) -> list[int]:
    """The sequence numbers of the stored checkpoints that are not 0."""
    channels = scene.emulator.tunnel("demo", scene.tunnel_id).channels.values()
    return [channel.sequence for channel in channels if channel.sequence]


async def test_an_empty_answer_to_a_checkpoint_stores_nothing() -> None:
    scene, foreign = VirtualScene(idle_advance=False), 4  # nothing moves once it counts as stored
    await scene.create_table(partitions=4)
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.Stream)

    async def handle(request: HttpRequest) -> HttpResponse:
        nonlocal foreign
        if request.path.endswith("/checkpoint") and foreign:
            foreign -= 1
            return HttpResponse(200, {}, b"")
        return await scene.handle(request)

    worker = scene.worker(RecordingSink(), handle=handle, checkpoint_interval=5)
    async with scene.running(worker):
        await scene.put(KEYS, [2])
        await until(lambda: not foreign)
        await until(lambda: len(checkpointed(scene)) == 4)


async def test_an_empty_answer_to_a_heartbeat_takes_no_channel_away_and_opens_no_fence() -> None:
    scene = await streaming()
    worker = scene.worker(RecordingSink())
    async with scene.running(worker):
        await until(lambda: len(worker.status.channels) == 4)
        last = worker.status.last_heartbeat
        scene.deliver = lambda name, answer: HttpResponse(200, {}, b"") if name == "heartbeat" else answer
        await asyncio.sleep(25)

        assert len(worker.status.channels) == 4
        assert worker.status.last_heartbeat == last
        assert "x-ots-requestid" in (worker.status.error or "")
        scene.deliver = lambda name, answer: answer
        await until(lambda: worker.status.error is None)


@pytest.mark.parametrize("call", ["list", "delete"])
async def test_an_empty_answer_shows_no_tunnels_and_deletes_none(call: str) -> None:
    scene = await streaming()
    scene.deliver = lambda name, answer: HttpResponse(200, {}, b"") if name == call else answer
    client = scene.calling_client()

    with pytest.raises(ConnectionLost, match="x-ots-requestid"):
        await (client.list_tunnels(TABLE) if call == "list" else client.delete_tunnel(TABLE, "t"))
