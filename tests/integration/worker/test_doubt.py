"""An abandoned write may still take effect: its channel is not reported as free until D is over.

What lasts is measured in virtual time: that a machine stands still for a part of a second counts for nothing.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.model import ChannelStatus, TunnelType
from tests.support.emulator.emulator_scene import EmulatorScene
from tests.support.emulator.virtual_scene import QuickScene, now
from tests.support.interceptor import Interceptor
from tests.support.sinks.sinks import RecordingSink, check_order
from tests.support.waiting import until

KEYS = [f"k{number:03}" for number in range(100)]


async def made() -> QuickScene:
    scene = QuickScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    return scene


@pytest.mark.looptime
async def test_a_channel_that_vanishes_in_the_middle_of_a_write_and_returns_is_not_read_beside_it() -> None:
    scene = await made()
    sink = RecordingSink(gate=asyncio.Event())
    interceptor = Interceptor(scene)
    worker = scene.worker(sink, handle=interceptor.handle, timeout=20)
    deadline = scene.settings(timeout=20).write_deadline

    async with scene.running(worker):
        await scene.put(KEYS)
        await sink.arrived.wait()
        opened = len(interceptor.times("getcheckpoint"))
        interceptor.hidden = 1
        await until(lambda: interceptor.hidden == 0 and sink.writing == 0, what="write abandoned")
        assert sink.gate is not None
        sink.gate.set()
        await until(lambda: len(sink.written) >= 100, what="read again")
        assert min(interceptor.times("getcheckpoint")[opened:]) - interceptor.hidden_at >= deadline - 0.02
        assert worker.status.channels

        # The doubt is over: leaving and returning once more costs nothing.
        interceptor.hidden = 1
        await until(lambda: interceptor.hidden == 0)
        opened = len(interceptor.times("getcheckpoint"))
        await until(lambda: len(interceptor.times("getcheckpoint")) > opened, what="opened a third time")
        assert interceptor.times("getcheckpoint")[-1] - interceptor.hidden_at < deadline
        await scene.put(KEYS, [2])
        await until(lambda: set(scene.everything()) <= set(sink.written), what="all")

    check_order(sink.written)
    assert scene.owners() == []


@pytest.mark.looptime
async def test_a_channel_that_returned_is_not_handed_back_while_the_abandoned_write_may_take_effect() -> None:
    scene = await made()
    sink = RecordingSink(gate=asyncio.Event())
    interceptor = Interceptor(scene)
    worker = scene.worker(sink, handle=interceptor.handle, timeout=30)
    deadline = scene.settings(timeout=30).write_deadline

    async with scene.running(worker):
        await scene.put(KEYS)
        await sink.arrived.wait()
        before = worker.status.channels.copy()
        interceptor.hidden = 1
        await until(lambda: interceptor.hidden == 0 and worker.status.channels not in ({}, before), what="returned")
        worker.drain()

    assert min(interceptor.closed_at) - interceptor.hidden_at >= deadline - 0.02
    assert scene.owners() == []


@pytest.mark.looptime
async def test_a_drain_hands_back_what_a_hanging_write_held() -> None:
    scene = await made()
    hanging = RecordingSink(gate=asyncio.Event())
    interceptor = Interceptor(scene)
    worker = scene.worker(hanging, handle=interceptor.handle, drain=60)

    async with scene.running(worker):
        await scene.put(KEYS)
        await hanging.arrived.wait()
        began = now()
        worker.drain()

    assert hanging.written == []
    assert now() - began < 60
    settings = scene.settings(drain=60)
    assert min(interceptor.closed_at) - began >= settings.abandon_after + settings.write_deadline - 0.02
    assert {channel.status for channel in scene.channels().values()} == {ChannelStatus.CLOSE}
    assert scene.emulator.tunnel("demo", scene.tunnel_id).clients == {}


@pytest.mark.looptime
async def test_a_malformed_answer_is_a_transient_error() -> None:
    scene = await made()
    sink = RecordingSink()
    interceptor = Interceptor(scene, spoiled={"connect": 1, "heartbeat": 2, "shutdown": 1})
    worker = scene.worker(sink, handle=interceptor.handle)

    async with scene.running(worker):
        await scene.put(KEYS)
        await until(lambda: len(sink.written) >= 100, what="all")

    assert interceptor.spoiled == {"connect": 0, "heartbeat": 0, "shutdown": 0}
    assert sorted(sink.written) == sorted(scene.everything())


@pytest.mark.parametrize("delay", [0, 0.001, 0.004])
async def test_channels_that_come_and_go_lose_nothing(delay: float) -> None:
    scene = EmulatorScene(Emulator(settings=Settings(page_rows=50, init_delay=0.01)))
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    sink = RecordingSink(delay=delay)
    interceptor = Interceptor(scene)
    worker = scene.worker(sink, handle=interceptor.handle, interval=0.05, timeout=1)

    async with scene.running(worker):
        for number in range(1, 8):
            await scene.put(KEYS, [number])
            interceptor.hidden = 1
            await until(_none_hidden(interceptor))
        await until(lambda: set(scene.everything()) <= set(sink.written), 20, what="all")

    for key, group in itertools.groupby(sorted(set(sink.written)), key=lambda row: row[0]):
        assert [number for _, number in group] == list(range(1, 8)), key


def _none_hidden(interceptor: Interceptor) -> Callable[[], bool]:
    return lambda: interceptor.hidden == 0
