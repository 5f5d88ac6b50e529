"""When the order to stop comes relative to the answers of the service."""

from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.client.page import Page
from ots_tunnel.model import ChannelStatus, Checkpoint
from tests.support.channel_scene import ChannelScene, EventSink, ScriptedService, page

pytestmark = pytest.mark.looptime


class AnsweredByHand(ScriptedService):
    """The checkpoint is answered when the test says so; the stream has no end."""

    answer: asyncio.Future[Checkpoint]

    async def get_checkpoint(self, *ids: object) -> Checkpoint:
        self.events.append("get")
        self.answer = asyncio.get_running_loop().create_future()
        return await self.answer

    async def read_records(self, *ids: object, **unused: object) -> Page:
        await asyncio.sleep(0.05)
        return page(1, "t1", may_more=True)


@pytest.mark.parametrize("answer_first", [True, False])
@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
async def test_an_order_to_stop_around_the_checkpoints_answer_hands_the_channel_back(
    rounds: int, answer_first: bool
) -> None:
    events: list[str] = []
    service = AnsweredByHand({}, events=events)
    scene = ChannelScene(service, EventSink(events), drain=2, checkpoint_interval=0.2, interval=1, timeout=4)
    scene.open()
    await asyncio.sleep(0.01)
    steps = [lambda: service.answer.set_result(service.stored), lambda: scene.notify(ChannelStatus.CLOSING, 2)]

    for number, step in enumerate(steps if answer_first else reversed(steps)):
        for _ in range(rounds * number):
            await asyncio.sleep(0)
        if not (step is steps[0] and service.answer.done()):
            step()
    await asyncio.sleep(2)

    assert scene.channel.is_over
    await scene.close()
