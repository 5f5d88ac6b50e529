"""Shutdown of a processor: once, after its last records, before the channel's next processor."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ots_tunnel.model import ChannelStatus
from ots_tunnel.processor import ChannelContext, SimpleProcessorFactory
from ots_tunnel.protocol.channel import Vanished
from tests.sharp_edges.recording_processor import PAGES, SHORT, RecordingProcessor, patient
from tests.support.channel_scene import ChannelScene, ScriptedService, page
from tests.support.waiting import until


@pytest.mark.parametrize("end", [ChannelStatus.CLOSE, ChannelStatus.TERMINATED, ChannelStatus.CLOSING, None])
async def test_g08_shutdown_waits_for_the_records_under_way(end: ChannelStatus | None) -> None:
    """Go calls ShutdownFunc beside a running ProcessFunc when a channel is taken away; ours calls it after."""
    processor = RecordingProcessor()
    scene = ChannelScene(ScriptedService(PAGES), processor.sink(), **SHORT)
    scene.open()
    await until(processor.began.is_set)

    if end is None:
        scene.channel.feed(Vanished())
    else:
        scene.notify(end, 2)
    await asyncio.sleep(0.15)  # longer than D
    assert processor.calls == ["initialize", "process"]
    processor.gate.set()
    await until(lambda: processor.inside == 0 and len(processor.calls) == 3)

    assert processor.calls == ["initialize", "process", "shutdown"]
    assert not processor.overlapped
    await scene.close()


async def test_g08_a_shutdown_that_is_a_coroutine_waits_for_a_function_under_way() -> None:
    """The same for a coroutine and a function; the function's thread cannot be cancelled."""
    processor = RecordingProcessor()

    class Mixed:
        initialize, process = (
            processor.initialize,
            staticmethod(lambda context, records, confirm: processor.process(context, records)),
        )

        async def shutdown(self, context: ChannelContext) -> None:
            processor.shutdown(context)

    class Factory(SimpleProcessorFactory):
        def create(self, context: ChannelContext) -> object:
            return Mixed()

    scene = ChannelScene(ScriptedService(PAGES), patient(Factory(processor.process)), **SHORT)
    scene.open()
    await until(processor.began.is_set)

    scene.channel.feed(Vanished())
    await asyncio.sleep(0.15)
    assert processor.calls == ["initialize", "process"]
    processor.gate.set()
    await until(lambda: processor.calls == ["initialize", "process", "shutdown"])

    assert not processor.overlapped
    await scene.close()


async def test_g08_a_worker_that_ends_meanwhile_leaves_no_processor_without_its_shutdown() -> None:
    """A task that waits for a processor's shutdown may be cancelled twice: shutdown still comes after the records."""
    processor = RecordingProcessor()
    sink = processor.sink()
    scene = ChannelScene(ScriptedService(PAGES), sink, **SHORT)
    scene.open()
    await until(processor.began.is_set)

    scene.channel.feed(Vanished())
    await asyncio.sleep(0.05)
    scene.cancel()
    await asyncio.sleep(0.05)
    assert processor.calls == ["initialize", "process"]
    processor.gate.set()
    await asyncio.wait_for(sink.close(), 10)

    assert processor.calls == ["initialize", "process", "shutdown"]


async def test_g08_the_next_processor_of_a_channel_waits_for_the_last_ones_shutdown() -> None:
    """In Go a channel that comes back is processed beside its own ShutdownFunc; ours begins when that has returned."""
    processor, slow, began = RecordingProcessor(), threading.Event(), threading.Event()
    processor.gate.set()

    def shutdown(context: ChannelContext) -> None:
        processor.enter("shutdown")
        began.set()
        assert slow.wait(20)
        processor.inside -= 1

    factory = SimpleProcessorFactory(processor.process, initialize=processor.initialize, shutdown=shutdown)
    sink = patient(factory)
    scene = ChannelScene(ScriptedService({"t0": page(1, "t1", False), "t1": page(0, "t1", False)}), sink, **SHORT)
    previous = scene.open()
    await until(lambda: previous.progress.rows == 1)

    previous.feed(Vanished())
    await until(began.is_set)
    scene.open()
    await asyncio.sleep(0.15)
    assert processor.calls == ["initialize", "process", "shutdown"]
    slow.set()
    await until(lambda: processor.calls[3:5] == ["initialize", "process"])

    assert not processor.overlapped
    await scene.close()
