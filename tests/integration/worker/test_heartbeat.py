"""The heartbeat under failures: it waits for nothing, survives transient errors, and ends the worker on final ones.

In virtual time: between two beats a busy machine may stand still for longer than a client may be silent.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import pytest

from ots_emulator.server.faults import FaultRule
from ots_tunnel.errors import PermissionDenied, TunnelExpired
from ots_tunnel.model import FINISHED, ChannelStatus, TunnelType
from tests.support.emulator.virtual_scene import QuickScene, now
from tests.support.interceptor import Interceptor
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

KEYS = [f"k{number:03}" for number in range(100)]


def beats(interceptor: Interceptor) -> list[float]:
    return interceptor.times("heartbeat")


@pytest.mark.parametrize("operation", ["Checkpoint", "GetCheckpoint", "ReadRecords"])
async def test_beats_continue_while_other_calls_hang(operation: str) -> None:  # G12
    scene = QuickScene()
    await scene.create_table(partitions=2)
    await scene.create_tunnel(TunnelType.Stream)
    scene.emulator.faults.add(FaultRule(operation=operation, latency=12, count=4))
    sink = RecordingSink()
    interceptor = Interceptor(scene)
    worker = scene.worker(sink, handle=interceptor.handle, interval=1, timeout=50)

    async with scene.running(worker):
        await scene.put(KEYS)
        await until(lambda: len(beats(interceptor)) > 10)
        await until(lambda: len(sink.written) >= 100, what="all")

    gaps = [later - earlier for earlier, later in itertools.pairwise(beats(interceptor))]
    assert max(gaps) < 8
    assert sorted(sink.written) == sorted(scene.everything())


async def test_beats_continue_while_the_sink_hangs() -> None:
    scene = QuickScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    gate = asyncio.Event()
    sink = RecordingSink(gate=gate)
    interceptor = Interceptor(scene)
    worker = scene.worker(sink, handle=interceptor.handle, interval=1)

    async with scene.running(worker):
        await scene.put(KEYS)
        await sink.arrived.wait()
        before = worker.status.client_id
        seen = len(beats(interceptor))
        await until(lambda: len(beats(interceptor)) > seen + 15)
        gate.set()
        await until(lambda: len(sink.written) >= 100)
        assert worker.status.client_id == before

    assert sorted(sink.written) == sorted(scene.everything())


@pytest.mark.parametrize("code", ["OTSTunnelServerUnavailable", "OTSAuthFailed", "OTSServerBusy"])
async def test_the_same_client_survives_a_transient_error(code: str) -> None:  # G14
    scene = QuickScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    sink = RecordingSink()
    worker = scene.worker(sink, timeout=50)

    async with scene.running(worker):
        await until(lambda: worker.status.is_ready)
        before = worker.status.client_id
        scene.emulator.faults.add(FaultRule(operation="Heartbeat", count=3, code=code))
        await scene.put(KEYS)
        await until(lambda: len(scene.emulator.faults) == 0 and len(sink.written) >= 100)
        assert worker.status.client_id == before

    assert sorted(sink.written) == sorted(scene.everything())


async def test_silence_beyond_the_timeout_brings_a_new_client_and_no_writes_before_it() -> None:
    scene = QuickScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    sink = RecordingSink()
    worker = scene.worker(sink)

    async with scene.running(worker):
        await until(lambda: worker.status.is_ready)
        before = worker.status.client_id
        rule = FaultRule(operation="Heartbeat", code="OTSTunnelServerUnavailable")
        scene.emulator.faults.add(rule)
        await asyncio.sleep(7.5)  # beyond timeout - D, which is 7.2 s
        await scene.put(KEYS)
        await asyncio.sleep(0.5)
        assert worker.status.client_id == before
        written_behind_the_fence = list(sink.written)
        await until(lambda: worker.status.client_id != before, what="new client")
        scene.emulator.faults.clear()
        await until(lambda: len(sink.written) >= 100)

    assert written_behind_the_fence == []
    assert sorted(sink.written) == sorted(scene.everything())


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (lambda scene: scene.emulator.expire_tunnel("demo", scene.tunnel_id), TunnelExpired),
        (
            lambda scene: scene.emulator.faults.add(FaultRule("Heartbeat", code="OTSPermissionDenied")),
            PermissionDenied,
        ),
        (lambda scene: scene.emulator.faults.add(FaultRule("ReadRecords", code="OTSTunnelExpired")), TunnelExpired),
    ],
    ids=["expired", "denied", "expired at a read"],
)
async def test_an_error_that_no_new_client_can_fix_ends_the_worker(
    fault: Callable[[QuickScene], None], error: type[Exception]
) -> None:
    scene = QuickScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    worker = scene.worker(RecordingSink())
    running = asyncio.create_task(worker.run())
    await until(lambda: worker.status.is_ready)

    fault(scene)

    with pytest.raises(error):
        await asyncio.wait_for(running, 150)
    assert worker.status.error is not None


async def test_an_end_that_cannot_be_stored_is_reported_as_close() -> None:  # G6
    scene = QuickScene()
    await scene.create_table()
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.BaseData)
    scene.emulator.faults.add(FaultRule(operation="Checkpoint", code="OTSTunnelServerUnavailable"))
    sink = RecordingSink()
    (channel,) = scene.emulator.tunnel("demo", scene.tunnel_id).channels.values()

    async with scene.running(scene.worker(sink, timeout=9)):
        await until(lambda: len(sink.written) >= 200, 20, "read a second time")
        assert channel.status is not ChannelStatus.TERMINATED
        scene.emulator.faults.clear()
        await until(lambda: channel.status is ChannelStatus.TERMINATED)

    assert channel.token == FINISHED
    assert set(sink.written) == set(scene.everything())


async def test_an_ended_channel_is_reported_early() -> None:
    scene = QuickScene()
    await scene.create_table(partitions=2)
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.BaseAndStream)
    worker = scene.worker(RecordingSink(), interval=20, timeout=60)

    began = now()
    async with scene.running(worker):
        await until(
            lambda: (
                len(worker.status.channels) > 0
                and all(view.progress.channel_type == "Stream" for view in worker.status.channels.values())
            ),
            what="the stream is followed",
        )
        assert now() - began < 10, "long before the next regular beat"


async def test_a_failing_channel_is_retried_at_the_pace_of_the_heartbeat() -> None:
    scene = QuickScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    scene.emulator.faults.add(FaultRule(operation="ReadRecords", code="OTSInternalFailure", count=4))
    sink = RecordingSink()
    interceptor = Interceptor(scene)
    worker = scene.worker(sink, handle=interceptor.handle, interval=2)

    async with scene.running(worker):
        await scene.put(KEYS)
        await until(lambda: len(sink.written) >= 100)
        (view,) = worker.status.channels.values()
        assert view.progress.error is None

    opened = interceptor.times("getcheckpoint")
    assert min(later - earlier for earlier, later in itertools.pairwise(opened)) > 1.5
    assert sorted(sink.written) == sorted(scene.everything())
