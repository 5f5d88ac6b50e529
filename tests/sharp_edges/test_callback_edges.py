"""Users' callbacks: each channel has its own processor, and no error of a callback is lost."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from ots_tunnel.errors import ProcessorFailed
from ots_tunnel.model import ChannelId, ChannelStatus
from ots_tunnel.processor import ChannelContext, Confirm, SimpleProcessorFactory
from tests.sharp_edges.recording_processor import PAGES, SHORT, RecordingProcessor, patient
from tests.support.channel_scene import ChannelScene, EventSink, ScriptedService
from tests.support.waiting import until

ERRORS = [RuntimeError("no"), ProcessorFailed("no"), StopIteration(), asyncio.CancelledError(), KeyError("x")]


@pytest.mark.looptime
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_j03_a_channel_that_cannot_be_set_up_is_given_back(error: BaseException) -> None:
    """Java loses an error of a channel's set-up, and the channel stays idle; ours reports CLOSE and the error."""
    service = ScriptedService(PAGES)
    sink = EventSink(service.events, begin_error=RuntimeError("no") if isinstance(error, StopIteration) else error)
    scene = ChannelScene(service, sink)
    scene.open()

    assert (await scene.over()).status is ChannelStatus.CLOSE
    assert scene.channel.progress.error
    await scene.close()


@pytest.mark.parametrize("callback", ["initialize", "process"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_j03_whatever_a_function_raises_the_channel_is_given_back(error: BaseException, callback: str) -> None:
    """Java's channel stays RUNNING after a hidden error; ours ends with any error, also with asyncio's special ones."""

    def raises(*arguments: object) -> None:
        raise error

    callbacks = {"process": lambda *arguments: None, callback: raises}
    service = ScriptedService(PAGES)
    scene = ChannelScene(service, patient(SimpleProcessorFactory(**callbacks)), **SHORT)
    scene.open()

    await until(lambda: scene.channel.is_over)
    assert scene.channel.channel.status is ChannelStatus.CLOSE
    assert type(error).__name__ in (scene.channel.progress.error or "")
    await scene.close()


@pytest.mark.looptime
@pytest.mark.parametrize("callback", ["initialize", "process"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_j03_whatever_a_coroutine_raises_the_channel_is_given_back(error: BaseException, callback: str) -> None:
    """The same for coroutines: a cancellation that they raise is not the cancellation of the channel."""

    async def raises(*arguments: object) -> None:
        await asyncio.sleep(0.01)
        raise error

    async def fine(*arguments: object) -> None:
        return None

    callbacks = {"process": fine, callback: raises}
    service = ScriptedService(PAGES)
    scene = ChannelScene(service, patient(SimpleProcessorFactory(**callbacks)))
    scene.open()

    assert (await scene.over()).status is ChannelStatus.CLOSE
    await scene.close()


async def test_j06_a_channels_end_does_not_concern_another_channel() -> None:
    """Java shuts one processor of all channels down when any closes; here each channel has a processor."""
    processor, other = RecordingProcessor(), RecordingProcessor()
    processor.gate.set()
    made: list[str] = []

    class Factory(SimpleProcessorFactory):
        def create(self, context: ChannelContext) -> object:
            made.append(context.channel_id)
            mine = processor if context.channel_id == "c1" else other
            return SimpleProcessorFactory(mine.process, initialize=mine.initialize, shutdown=mine.shutdown).create(
                context
            )

    sink = patient(Factory(processor.process))
    short, long = (
        ChannelScene(ScriptedService(PAGES), sink, **SHORT),
        ChannelScene(ScriptedService(PAGES), sink, **SHORT),
    )
    short.open(ChannelId("c1"))
    long.open(ChannelId("c2"))
    await until(other.began.is_set)

    await until(lambda: short.channel.is_over)
    assert processor.calls == ["initialize", "process", "process", "shutdown"]
    assert other.calls == ["initialize", "process"]
    other.gate.set()
    await until(lambda: long.channel.is_over)

    assert other.calls == ["initialize", "process", "process", "shutdown"]
    assert sorted(made) == ["c1", "c2"]  # each is made in a thread, in whichever order
    await short.close()
    await long.close()


async def test_j07_confirmations_from_threads_change_a_channel_in_the_loop_alone() -> None:
    """Java's channel is written by several threads; ours by the loop's alone, whichever thread calls `confirm`."""
    confirms: list[Confirm] = []
    changed_by: set[int] = set()

    def process(context: ChannelContext, records: object, confirm: Confirm) -> None:
        confirms.append(confirm)

    def watch(frame: object, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name in ("page_confirmed", "confirmed", "_settle"):
            changed_by.add(threading.get_ident())

    sink = patient(SimpleProcessorFactory(process, manual_checkpoints=True))
    scene = ChannelScene(ScriptedService(PAGES), sink, **SHORT)
    scene.open()
    await until(lambda: len(confirms) == 2)
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        threads = [threading.Thread(target=confirm) for confirm in confirms * 5]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        await until(lambda: scene.channel.is_over)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)

    assert scene.channel.channel.status is ChannelStatus.TERMINATED
    assert changed_by == {threading.get_ident()}
    await scene.close()
