"""A worker says that it has reached the end time only where that is proven; the service's time is the loop's."""

from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.model import TunnelType
from ots_tunnel.protocol import tunnel_pb2 as pb
from ots_tunnel.protocol.http.message import HttpResponse
from tests.support.emulator.emulator_scene import TABLE
from tests.support.emulator.virtual_scene import KEYS, VirtualScene, now
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


async def split_before_the_end(scene: VirtualScene) -> int:
    """Two channels, one of which has two children with changes before the end time, which is returned."""
    await scene.create_table(partitions=2)
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.Stream)
    await scene.put(KEYS, [2])
    scene.emulator.split("demo", TABLE, key=(b"k090",))
    await scene.put(KEYS, [3])
    return await end_passed(scene)


@pytest.mark.parametrize("assign_interval", [0.0, 35.0, 300.0])
async def test_children_that_are_given_out_late_are_read_to_the_end_time(assign_interval: float) -> None:
    scene = VirtualScene(assign_interval=assign_interval)
    end_us = await split_before_the_end(scene)
    await scene.put(KEYS, [4])
    sink = RecordingSink()
    worker = scene.worker(sink, end_us=end_us, exit_when_complete=True)

    await asyncio.wait_for(worker.run(), 3000)

    assert worker.status.tunnel_done
    assert set(sink.written) == {(key, number) for key in KEYS for number in (2, 3)}


@pytest.mark.parametrize("strict_owner", [False, True])
async def test_children_of_a_channel_that_stopped_are_not_waited_for_any_longer_than_it_takes_to_know(
    strict_owner: bool,
) -> None:
    # one read of each child proves it; where only owners may read, the heartbeat timeout has to pass
    scene = VirtualScene(strict_owner=strict_owner)
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    await scene.put(KEYS)
    end_us = await end_passed(scene)
    await scene.put(KEYS, [2])
    scene.emulator.split("demo", TABLE)
    await scene.put(KEYS, [3])
    sink, began = RecordingSink(), now()
    worker = scene.worker(sink, end_us=end_us, exit_when_complete=True)

    await asyncio.wait_for(worker.run(), 600)

    assert sorted(sink.written) == [(key, 1) for key in KEYS]
    assert worker.status.tunnel_done
    assert (now() - began > 40) is strict_owner
