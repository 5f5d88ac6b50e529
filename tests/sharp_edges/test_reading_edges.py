"""Reading ahead, pausing and waiting for a slot can be interrupted, and delay no record that was read."""

from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.errors import CodecError, ConnectionLost, ResourceGone
from ots_tunnel.model import FINISHED, ChannelId, ChannelStatus, ChannelType
from ots_tunnel.protocol import tunnel_pb2 as pb
from ots_tunnel.protocol.backoff import READ_RETRY
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TUNNEL_OPERATIONS
from ots_tunnel.protocol.idle_read import IDLE_READ, TICK
from ots_tunnel.transport.inprocess import InProcessTransport
from ots_tunnel.worker.channel.pipeline import Pipeline
from ots_tunnel.worker.channel.read_ahead import READ_AHEAD_PAGES, ChannelStart, ReadAhead
from tests.support.channel_scene import CHANNEL, ChannelScene, CursorOf, EventSink, ScriptedService, at, name_of, page
from tests.support.emulator.emulator_scene import CREDENTIALS
from tests.support.guards import open_fence
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

ENDLESS = {f"t{number}": page(1, f"t{number + 1}", True) for number in range(50)}
IDLE = {"t0": page(0, "t0", False)}


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_g09_a_channel_that_waits_for_its_turn_closes_at_once() -> None:
    """Go's channel handles CLOSING only with a slot; ours stops waiting for one and reports CLOSE at once."""
    service = ScriptedService(ENDLESS)
    scene = ChannelScene(service, EventSink(service.events), slots=asyncio.Semaphore(0))
    scene.open()
    await asyncio.sleep(100)
    began = now()

    scene.notify(ChannelStatus.CLOSING, 2)

    assert (await scene.over()).status is ChannelStatus.CLOSE
    assert now() - began < 0.1
    assert not [event for event in service.events if event.startswith("read")]
    await scene.close()


async def test_g10_a_pause_is_interrupted_by_the_close() -> None:
    """Go sleeps its back-off of up to 5 s to the end; ours ends with the order to close."""
    service = ScriptedService(IDLE)
    scene = ChannelScene(service, EventSink(service.events))
    scene.open()
    await asyncio.sleep(60)  # by now pauses are 5 s
    began = now()

    scene.notify(ChannelStatus.CLOSING, 2)

    assert (await scene.over()).status is ChannelStatus.CLOSE
    assert now() - began < 0.1
    await scene.close()


async def test_g10_a_call_that_is_repeated_is_interrupted_by_the_close() -> None:
    """Go repeats a failing read for 75 s and ignores CLOSING meanwhile; ours ends with the order to close."""

    class Failing(ScriptedService):
        async def read_records(self, *ids_and_token: object, **unused: object) -> object:
            operation = TUNNEL_OPERATIONS["ReadRecords"]
            message = pb.ReadRecordsRequest(tunnel_id="t", client_id="c", channel_id="c", token="t0")
            return await caller.call(operation, message, retry=READ_RETRY)

    async def lost(request: HttpRequest) -> HttpResponse:
        raise ConnectionLost("reset")

    caller = ServiceCaller(InProcessTransport(lost), "demo", CREDENTIALS)
    service = Failing({})
    scene = ChannelScene(service, EventSink(service.events))
    scene.open()
    await asyncio.sleep(30)
    assert not scene.channel.is_over
    began = now()

    scene.notify(ChannelStatus.CLOSING, 2)

    await scene.over()
    assert now() - began < 0.1
    await scene.close()


def pipeline(service: ScriptedService, sink: EventSink, *, draws: list[float], slept: list[float]) -> Pipeline:
    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        service.events.append("sleep")
        await asyncio.sleep(seconds)

    def entropy() -> float:
        draws.append(0.25 * (len(draws) % 4))
        return draws[-1]

    context = ChannelScene(service, sink).worker
    ahead = ReadAhead(
        ChannelStart(CHANNEL, ChannelType.STREAM, at("t0")),
        CursorOf(service),
        context,
        on_read=lambda page: None,
        sleep=sleep,
        entropy=entropy,
    )
    fence = open_fence(CHANNEL)
    return Pipeline(ahead, context, fence, lambda page: service.events.append(f"confirmed {name_of(page.following)}"))


async def test_j01_a_pause_is_drawn_once_and_slept_as_drawn() -> None:
    """Java draws its pause twice and sleeps 50, 1250, 2000 ms; ours is one draw per sleep, rounded up once."""
    service, draws, slept = ScriptedService(IDLE), list[float](), list[float]()
    moving = asyncio.create_task((made := pipeline(service, EventSink(service.events), draws=draws, slept=slept)).run())
    await asyncio.sleep(20)
    made.stop()
    await moving

    nominal = [IDLE_READ.delay(attempt, entropy) for attempt, entropy in enumerate(draws)]
    assert all(0 <= seconds - drawn < TICK for seconds, drawn in zip(slept, nominal, strict=True))
    assert [round(seconds, 4) for seconds in slept[:3]] == [0.015, 0.0875, 0.5]


async def test_j01_a_repeated_call_pauses_as_it_says() -> None:
    """Java logs another pause than it sleeps; a repeated call of ours draws once and sleeps that long."""
    draws, slept = list[float](), list[float]()

    def entropy() -> float:
        draws.append(0.1 * len(draws))
        return draws[-1]

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def third_time_lucky(request: HttpRequest) -> HttpResponse:
        if len(slept) < 3:
            raise ConnectionLost("reset")
        return HttpResponse(200, {}, b"")

    caller = ServiceCaller(InProcessTransport(third_time_lucky), "demo", CREDENTIALS, sleep=sleep, entropy=entropy)
    await caller.call(TUNNEL_OPERATIONS["ListTunnel"], pb.ListTunnelRequest(), retry=READ_RETRY)

    assert slept == [READ_RETRY.delay(attempt, entropy) for attempt, entropy in enumerate(draws)]


async def test_j02_records_are_delivered_before_the_pause() -> None:
    """Java pauses before it delivers a page; ours is confirmed before the pause is over."""
    service = ScriptedService({"t0": page(1, "t1", False), "t1": page(0, FINISHED)})

    await pipeline(service, EventSink(service.events, delay=0.01), draws=[], slept=[]).run()

    events = service.events
    assert events.index("confirmed t1") < events.index("read t1")
    assert events.index("write t0") <= events.index("sleep") + 1


@pytest.mark.parametrize("moment", [0.0, 0.0005, 0.0015, 0.5, 3.0, 60.0])
async def test_j04_every_permit_that_was_taken_is_given_back_once(moment: float) -> None:
    """Java releases a permit that it never had; ours are as many as before, wherever the channel was stopped."""
    slots = asyncio.Semaphore(2)
    scenes = [
        ChannelScene(service := ScriptedService(ENDLESS), EventSink(service.events, delay=1), slots=slots)
        for _ in range(4)
    ]
    for number, scene in enumerate(scenes):
        scene.open(ChannelId(f"c{number}"))
    await asyncio.sleep(moment)

    for scene in scenes[::2]:
        scene.notify(ChannelStatus.CLOSING, 2)
    for scene in scenes[1::2]:
        scene.notify(ChannelStatus.CLOSE, 2)
    for scene in scenes:
        await scene.over()
        await scene.close()

    async with asyncio.timeout(10), slots, slots:
        assert slots.locked()
    assert [scene.worker.budget.used_bytes for scene in scenes] == [0] * 4


@pytest.mark.parametrize("error", [ConnectionLost("reset"), CodecError("damaged")])
async def test_j11_a_failed_read_discards_nothing_that_was_read_before(error: Exception) -> None:
    """Java forgets the pages before a failed read; ours are written, confirmed and stored before the channel fails."""
    service = ScriptedService({"t0": page(1, "t1", True), "t1": page(1, "t2", True)}, errors={"read t2": [error]})
    scene = ChannelScene(service, EventSink(service.events, delay=5))
    scene.open()

    assert (await scene.over()).status is ChannelStatus.CLOSE
    assert "cancelled t0" not in service.events
    assert service.events.count("wrote t1") == 1
    assert service.stored.token == at("t2")
    assert now() < 11  # two writes, and no write in doubt to be waited for
    assert str(error) in (scene.channel.progress.error or "")
    await scene.close()


async def test_j11_pages_that_may_be_another_clients_are_not_written_to_the_end() -> None:
    """Pages read before a failure are written, but not when the failure means that the client is gone."""
    gone = ResourceGone("OTSResourceGone", "client not exist")
    service = ScriptedService({"t0": page(1, "t1", True)}, errors={"read t1": [gone]})
    scene = ChannelScene(service, EventSink(service.events, delay=5))
    scene.open()

    await scene.over()

    assert "wrote t0" not in service.events
    assert service.stored.token == at("t0")
    await scene.close()


async def test_j13_a_slow_sink_holds_reading_back_and_nothing_else() -> None:
    """Java's full pools run reads in the callers' threads; ours stop reading when two pages wait."""
    service = ScriptedService(ENDLESS)
    sink = EventSink(service.events, gate=asyncio.Event())
    scene = ChannelScene(service, sink)
    began = now()
    scene.open()

    await asyncio.sleep(1000)

    assert len([event for event in service.events if event.startswith("read")]) == 1 + READ_AHEAD_PAGES
    assert now() - began == pytest.approx(1000)
    assert sink.gate is not None
    sink.gate.set()
    await until(lambda: "wrote t9" in service.events)
    await scene.close()
