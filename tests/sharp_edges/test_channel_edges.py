"""Channels, their events and their positions: immutable values, handled in their order."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.commands.tunnel import channel_row
from ots_tunnel.errors import CodecError
from ots_tunnel.model import (
    FINISHED,
    Channel,
    ChannelId,
    ChannelInfo,
    ChannelStatus,
    ChannelType,
    Checkpoint,
    ClientId,
    SequenceInfo,
    TunnelId,
    TunnelType,
)
from ots_tunnel.protocol import channel as machine
from ots_tunnel.protocol import tunnel_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.token import channel_type
from ots_tunnel.transport.inprocess import InProcessTransport
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from ots_tunnel.worker.status.channel_view import ChannelView, channel_document
from ots_tunnel.worker.status.gauges import StatusCollector
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.worker_status import WorkerStatus
from tests.support.channel_scene import CHANNEL, ChannelScene, EventSink, ScriptedService, at, page, read_page
from tests.support.emulator.emulator_scene import CREDENTIALS
from tests.support.emulator.virtual_scene import VirtualScene
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

OPEN, CLOSING, CLOSE = ChannelStatus.OPEN, ChannelStatus.CLOSING, ChannelStatus.CLOSE


@pytest.mark.parametrize("token", [FINISHED, "", "not a token", at("t0")])
async def test_g01_a_channel_of_base_data_is_one_wherever_it_is_resumed(token: str) -> None:
    """Go takes a base channel resumed at `finished` for a stream channel; ours looks at the id first."""
    service = ScriptedService({}, stored=Checkpoint(token, 3))
    channel_scene = ChannelScene(service, EventSink(service.events))
    channel_scene.open(ChannelId("BaseData_0"))

    await channel_scene.over()

    assert channel_scene.channel.progress.channel_type is ChannelType.BASE
    assert channel_type(ChannelId("4873_1"), FINISHED) is ChannelType.STREAM
    await channel_scene.close()


async def test_g05_a_report_under_way_is_not_changed_by_what_happens_meanwhile() -> None:
    """Go's heartbeat and its state machine share mutable channels; ours are immutable values."""
    connection = machine.Connection(Channel(CHANNEL, 4, OPEN), machine.State.RUNNING)
    report, answer = [connection.channel], machine.Notified(Channel(CHANNEL, 5, CLOSING))

    closing, _ = machine.step(connection, answer)
    finished, _ = machine.step(closing, machine.PipelineFinished())

    assert finished.channel == Channel(CHANNEL, 6, ChannelStatus.TERMINATED)
    assert report == [Channel(CHANNEL, 4, OPEN)]
    assert answer.channel == Channel(CHANNEL, 5, CLOSING)
    with pytest.raises(dataclasses.FrozenInstanceError):
        report[0].version = 9


@pytest.mark.parametrize(
    ("answers", "ends"),
    [
        ([(CLOSING, 2), (OPEN, 3)], Channel(CHANNEL, 4, CLOSE)),
        ([(OPEN, 3), (CLOSING, 2)], Channel(CHANNEL, 3, OPEN)),
        ([(OPEN, 1), (CLOSING, 2), (OPEN, 1)], Channel(CHANNEL, 3, CLOSE)),
    ],
    ids=["closed, then reported again", "an old CLOSING is ignored", "an old OPEN is ignored"],
)
async def test_g13_answers_are_handled_in_the_order_of_their_heartbeats(
    answers: list[tuple[ChannelStatus, int]], ends: Channel
) -> None:
    """Go handles each answer in a new goroutine, so that CLOSING and OPEN may swap; ours pass one queue."""
    service = ScriptedService({"t0": page(0, "t0", False)}, latency={"get": 5})
    channel_scene = ChannelScene(service, EventSink(service.events))
    channel_scene.prepare()

    for status, version in answers:  # all before the first of them is handled
        channel_scene.notify(status, version)
    await asyncio.sleep(20)

    assert channel_scene.channel.channel == ends
    await channel_scene.close()


async def test_j12_an_answer_without_a_next_token_is_not_the_end() -> None:
    """Java takes a missing answer for the end of the channel and loses data; here it is an error, and is read again."""
    scene = VirtualScene()
    await scene.create_table()
    await scene.put([f"k{number:03}" for number in range(120)])
    await scene.create_tunnel(TunnelType.BaseData)
    spoiled = [b"", pb.ReadRecordsResponse(next_token="").SerializeToString()]

    def spoil(name: str, answer: HttpResponse) -> HttpResponse:
        return HttpResponse(200, answer.headers, spoiled.pop()) if name == "readrecords" and spoiled else answer

    scene.deliver = spoil
    sink = RecordingSink()
    async with scene.running(scene.worker(sink)):
        await until(lambda: {channel.status for channel in scene.channels().values()} == {ChannelStatus.TERMINATED})

    assert spoiled == []
    assert sorted(sink.written) == sorted(scene.everything())


@pytest.mark.parametrize("body", [b"", pb.ReadRecordsResponse(next_token="").SerializeToString()])
async def test_j12_no_position_is_taken_over_that_the_service_did_not_name(body: bytes) -> None:
    """An empty token would be stored and the channel's position lost; ours refuses the answer."""

    async def answer(request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, {}, body)

    client = TunnelClient("http://service", "demo", CREDENTIALS, InProcessTransport(answer))

    with pytest.raises(CodecError, match="next_token"):
        await client.read_records(TunnelId("t"), ClientId("c"), CHANNEL, at("t0"))


async def test_j20_the_lag_without_a_position_is_unknown() -> None:
    """Java's lag without a position is the time since 1970; ours is None until there is a position."""
    base, stream = (ChannelProgress(CHANNEL, kind) for kind in ChannelType)
    base.page_confirmed(read_page(page(0, "t1", False), SequenceInfo(0, 1_000_000, 0)))

    assert (base.lag(1e9), stream.lag(1e9)) == (None, None)
    assert channel_document(ChannelView(base, OPEN), 1e9)["lagSeconds"] is None
    never_consumed = ChannelInfo(CHANNEL, ChannelType.STREAM, OPEN, ClientId("c"), 0, 0)
    assert channel_row(never_consumed)["consumed"] is None
    gauges = {family.name: family.samples for family in StatusCollector(_status(base, stream)).collect()}
    assert gauges["ots_tunnel_channel_lag_seconds"] == []


def _status(*channels: ChannelProgress) -> WorkerStatus:
    status = WorkerStatus("tunnel", "tag", WorkerMetrics("t"))
    for number, progress in enumerate(channels):
        status.channels[ChannelId(str(number))] = ChannelView(progress, OPEN)
    return status
