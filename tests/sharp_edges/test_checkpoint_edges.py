"""Checkpoints: confirmed progress is stored, and progress counts as stored only when it is."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ots_tunnel.errors import ConnectionLost, ServerUnavailable, ServiceError, TunnelError
from ots_tunnel.model import FINISHED, ChannelStatus, Checkpoint
from ots_tunnel.processor import ChannelContext, Confirm, SimpleProcessorFactory
from ots_tunnel.sinks.python.sink import ManualProcessorSink
from ots_tunnel.worker.progress.checkpointer import Checkpointer
from tests.support.channel_scene import ChannelScene, CursorOf, EventSink, ScriptedService, at, page
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

START = Checkpoint(at("t0"), 7)
UNAVAILABLE = ServerUnavailable("OTSTunnelServerUnavailable", "later", "", 503)


@pytest.mark.parametrize("arrival", [0.0, 0.0005, 0.001, 0.0015, 1.0, 2.0])
async def test_g06_the_end_that_arrives_with_the_close_is_stored_before_it_is_reported(arrival: float) -> None:
    """Go may drop the token `finished` that comes with the close, and reports TERMINATED; ours stores it first."""
    service = ScriptedService({"t0": page(1, "t1", True), "t1": page(1, FINISHED)}, latency={"put": 2})
    scene = ChannelScene(service, EventSink(service.events), checkpoint_interval=0.002)
    scene.open()
    await until(lambda: "wrote t1" in service.events)
    await asyncio.sleep(arrival)

    scene.notify(ChannelStatus.CLOSING, 2)

    assert (await scene.over()).status is ChannelStatus.TERMINATED
    assert service.stored.token == FINISHED
    assert service.events.index("stored finished") < service.events.index("report TERMINATED")
    await scene.close()


async def test_g06_an_end_that_cannot_be_stored_is_no_end() -> None:
    """Go reports TERMINATED even if the token `finished` is not stored; ours reports CLOSE then."""
    service = ScriptedService({"t0": page(1, FINISHED)}, errors={"put": [UNAVAILABLE] * 1000})
    scene = ChannelScene(service, EventSink(service.events))
    scene.open()

    assert (await scene.over()).status is ChannelStatus.CLOSE
    assert service.stored == START
    await scene.close()


@pytest.mark.parametrize("error", [ConnectionLost("reset"), UNAVAILABLE])
async def test_g07_a_token_stays_pending_until_it_is_acknowledged(error: TunnelError) -> None:
    """Go forgets a token when its flusher takes it; ours is sent again at the next interval if the call failed."""
    service = ScriptedService({}, errors={"put": [error, error]})
    checkpointer = Checkpointer(CursorOf(service), START, 5)
    running = asyncio.create_task(checkpointer.run())
    checkpointer.confirmed(at("t1"))

    await asyncio.sleep(11)
    assert checkpointer.durable == at("t0")
    assert checkpointer.age() == pytest.approx(11)
    await asyncio.sleep(5)

    assert service.stored == Checkpoint(at("t1"), 8)
    running.cancel()


async def test_g11_a_channel_is_finished_when_its_records_are_confirmed_not_when_they_were_handed_over() -> None:
    """Go's asynchronous factory reports TERMINATED after the last delivery; ours after the user's confirmation."""
    confirms: list[Confirm] = []

    async def process(context: ChannelContext, records: object, confirm: Confirm) -> None:
        confirms.append(confirm)

    service = ScriptedService({"t0": page(1, "t1", True), "t1": page(1, FINISHED)})
    scene = ChannelScene(service, ManualProcessorSink(SimpleProcessorFactory(process, manual_checkpoints=True)))
    scene.open()
    await until(lambda: len(confirms) == 2)
    await asyncio.sleep(1000)
    assert scene.channel.channel.status is ChannelStatus.OPEN
    assert service.stored == START

    confirms[1]()
    await asyncio.sleep(1000)
    assert scene.channel.channel.status is ChannelStatus.OPEN  # the page before it is not confirmed
    assert service.stored == START
    confirms[0]()

    assert (await scene.over()).status is ChannelStatus.TERMINATED
    assert service.stored.token == FINISHED
    await scene.close()


async def test_j08_a_checkpoint_error_is_logged_and_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    """Java swallows the service's errors at checkpoints; ours logs their text and repeats the call."""
    service = ScriptedService({}, errors={"put": [UNAVAILABLE]})
    checkpointer = Checkpointer(CursorOf(service), START, 5)
    checkpointer.confirmed(at("t1"))
    running = asyncio.create_task(checkpointer.run())

    with caplog.at_level(logging.WARNING):
        await asyncio.sleep(6)
    assert [(record.action, record.error) for record in caplog.records] == [("checkpoint_failed", str(UNAVAILABLE))]
    await asyncio.sleep(5)

    assert service.stored.token == at("t1")
    running.cancel()


async def test_j08_an_error_that_is_final_closes_the_channel_and_is_shown() -> None:
    """Java continues to read while no checkpoint can be stored; ours closes the channel and shows the error."""
    refusal = ServiceError("OTSSomethingNew", "not allowed", "", 400)
    service = ScriptedService({"t0": page(1, "t1", False), "t1": page(0, "t1", False)}, errors={"put": [refusal] * 99})
    scene = ChannelScene(service, EventSink(service.events), checkpoint_interval=5)
    scene.open()

    assert (await scene.over()).status is ChannelStatus.CLOSE
    assert scene.channel.progress.error == f"ServiceError: {refusal}"
    await scene.close()


async def test_j08_after_a_mismatch_the_checkpoint_is_sent_again_at_once() -> None:
    """Java adopts the number after a mismatch and drops the token; ours sends it again under the next number."""
    service = ScriptedService({})
    checkpointer = Checkpointer(CursorOf(service), START, 5)
    service.stored = Checkpoint(at("t0"), 20)
    checkpointer.confirmed(at("t1"))

    await checkpointer.flush()

    assert service.stored == Checkpoint(at("t1"), 21)


@pytest.mark.parametrize("pages_written", [1, 3])
async def test_j14_a_close_stores_what_is_confirmed(pages_written: int) -> None:
    """Java stores no checkpoint when a channel closes and repeats seconds of records; ours stores its last one."""
    service = ScriptedService({f"t{number}": page(1, f"t{number + 1}", True) for number in range(9)})
    scene = ChannelScene(service, EventSink(service.events, delay=1), checkpoint_interval=60)
    scene.open()
    await until(lambda: f"write t{pages_written - 1}" in service.events)

    scene.notify(ChannelStatus.CLOSING, 2)
    await scene.over()

    assert service.stored.token == at(f"t{pages_written}")
    assert f"write t{pages_written}" not in service.events
    assert service.events.index(f"stored t{pages_written}") < service.events.index("report CLOSE")
    await scene.close()


async def test_j14_a_channel_that_fails_stores_what_was_confirmed_before() -> None:
    """Java repeats up to an interval of records after a failure; ours repeats only the page that failed."""

    class SecondFails(EventSink):
        async def write(self, batch: object, guard: object) -> None:
            await super().write(batch, guard)
            self.error = ServiceError("OTSSomethingNew", "no")

    service = ScriptedService({f"t{number}": page(1, f"t{number + 1}", True) for number in range(9)})
    scene = ChannelScene(service, SecondFails(service.events), checkpoint_interval=60)
    scene.open()

    assert (await scene.over()).status is ChannelStatus.CLOSE
    assert service.stored.token == at("t1")
    await scene.close()
