"""A worker says that it has reached the end time only where that is proven; the service's time is the loop's."""

from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.model import TunnelType
from ots_tunnel.protocol import tunnel_pb2 as pb
from ots_tunnel.protocol.http.message import HttpResponse
from tests.support.emulator.virtual_scene import KEYS, VirtualScene
from tests.support.sinks.sinks import RecordingSink

pytestmark = pytest.mark.looptime


async def end_passed(scene: VirtualScene) -> int:
    """An end time behind everything that is written, which is over; Unix microseconds."""
    await asyncio.sleep(5)
    end_us = round(scene.clock.now() * 1e6)
    await asyncio.sleep(5)
    return end_us


async def test_an_empty_page_before_more_records_is_not_the_end() -> None:
    # a service may pass over a range of its log without records: it answers with an empty page that announces more
    scene = VirtualScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    await scene.put(KEYS)
    end_us = await end_passed(scene)
    passed_over = 3

    def deliver(name: str, answer: HttpResponse) -> HttpResponse:
        nonlocal passed_over
        if name != "readrecords" or not passed_over:
            return answer
        passed_over -= 1
        (channel,) = scene.emulator.tunnel("demo", scene.tunnel_id).channels.values()
        empty = pb.ReadRecordsResponse(next_token=channel.token, may_more_record=True)
        return HttpResponse(200, answer.headers, empty.SerializeToString())

    scene.deliver = deliver
    sink = RecordingSink()
    worker = scene.worker(sink, end_us=end_us, exit_when_complete=True)

    await asyncio.wait_for(worker.run(), 600)

    assert (len(sink.written), worker.status.tunnel_done) == (len(KEYS), True)
