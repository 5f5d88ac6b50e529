"""When the order to stop comes relative to the answers of the service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ots_tunnel.client.page import Page
from ots_tunnel.errors import ConnectionLost, ServerUnavailable
from ots_tunnel.model import FINISHED, ChannelStatus, Checkpoint
from tests.support.channel_scene import ChannelScene, EventSink, ScriptedService, page

pytestmark = pytest.mark.looptime


class Endless(ScriptedService):
    """The stream has no end."""

    async def read_records(self, *ids: object, **unused: object) -> Page:
        await asyncio.sleep(0.05)
        return page(1, "t1", may_more=True)


class AnsweredByHand(Endless):
    """The checkpoint is answered when the test says so."""

    answer: asyncio.Future[Checkpoint]

    async def get_checkpoint(self, *ids: object) -> Checkpoint:
        self.events.append("get")
        self.answer = asyncio.get_running_loop().create_future()
        return await self.answer


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


class Unanswered(Endless):
    """No checkpoint is answered within the time that a write may take."""

    async def checkpoint(self, *ids: object, **unused: object) -> None:
        await asyncio.sleep(16.6)
        raise ConnectionLost("no answer")


@pytest.mark.parametrize("is_under_way", [True, False])
async def test_checkpoints_without_an_answer_do_not_outlast_the_drain(is_under_way: bool) -> None:
    """D is 16.7 s. A call that is under way at the order to stop, and a last one, are all that is waited for."""
    events: list[str] = []
    interval = 1 if is_under_way else 3600
    scene = ChannelScene(
        Unanswered({}, events=events),
        EventSink(events),
        drain=45,
        checkpoint_interval=interval,
        interval=10,
        timeout=60,
    )
    scene.open()
    await asyncio.sleep(2)
    stopped = asyncio.get_running_loop().time()

    scene.notify(ChannelStatus.CLOSING, 2)
    await scene.over()

    assert asyncio.get_running_loop().time() - stopped < 35
    await scene.close()


class Unreadable(Endless):
    """The first checkpoint is stored, its answer is lost, and what is stored cannot be read afterwards."""

    has_stored = False

    async def checkpoint(
        self, *ids_and_checkpoint: object, timeout: float, before_send: Callable[[], None] | None = None
    ) -> None:
        await super().checkpoint(*ids_and_checkpoint, timeout=timeout, before_send=before_send)
        self.has_stored = True
        raise ConnectionLost("no answer")

    async def get_checkpoint(self, *ids: object) -> Checkpoint:
        if self.has_stored:
            await asyncio.sleep(60)
        return await super().get_checkpoint(*ids)


async def test_a_stored_checkpoint_that_cannot_be_read_does_not_outlast_the_drain() -> None:
    events: list[str] = []
    service = Unreadable({}, events=events)
    scene = ChannelScene(service, EventSink(events), drain=45, checkpoint_interval=3600, interval=10, timeout=60)
    scene.open()
    await asyncio.sleep(0.2)
    stopped = asyncio.get_running_loop().time()

    scene.notify(ChannelStatus.CLOSING, 2)
    await scene.over()

    assert service.has_stored
    assert asyncio.get_running_loop().time() - stopped < 45
    await scene.close()


async def test_a_slow_page_leaves_its_checkpoint_further_tries() -> None:
    """The page takes longer than D, and not as long as a drain lets it."""
    events: list[str] = []
    busy = [ServerUnavailable("OTSTunnelServerUnavailable", "busy", "", 503) for _ in range(2)]
    service = Endless({}, events=events, errors={"put": busy})
    scene = ChannelScene(
        service, EventSink(events, delay=20), drain=45, checkpoint_interval=3600, interval=10, timeout=60
    )
    scene.open()
    await asyncio.sleep(0.2)

    scene.notify(ChannelStatus.CLOSING, 2)
    await scene.over()

    assert events.count("put t1") == 3
    await scene.close()


async def test_an_order_to_stop_shortens_the_tries_of_a_last_checkpoint_that_run() -> None:
    """They would be repeated for the heartbeat timeout, 60 s; behind the order for D, 16.7 s."""
    events: list[str] = []
    down = [ServerUnavailable("OTSTunnelServerUnavailable", "busy", "", 503) for _ in range(200)]
    service = ScriptedService({"t0": page(1, FINISHED)}, events=events, errors={"put": down})
    scene = ChannelScene(service, EventSink(events), drain=45, checkpoint_interval=3600, interval=10, timeout=60)
    scene.open()
    await asyncio.sleep(5)
    assert "put finished" in events
    stopped = asyncio.get_running_loop().time()

    scene.notify(ChannelStatus.CLOSING, 2)
    await scene.over()

    assert asyncio.get_running_loop().time() - stopped < 17
    await scene.close()
