"""Users' callbacks: one after the other within a channel, each channel its own, and no error lost."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from ots_tunnel.errors import ProcessorFailed
from ots_tunnel.model import FINISHED, ChannelId, ChannelStatus
from ots_tunnel.processor import ChannelContext, Confirm, SimpleProcessorFactory
from ots_tunnel.protocol.channel import Vanished
from ots_tunnel.sinks.processor import ProcessorSink
from tests.sharp_edges.stage import Recorder, Service, Stand, page, until

PAGES = {"t0": page(1, "t1", True), "t1": page(1, FINISHED)}
#: Short times for tests with threads, which no virtual time can move: D is 0.1 s.
SHORT = {"interval": 0.1, "timeout": 0.4, "drain": 20}


@dataclass
class Book:
    """Notes when a callback begins and ends, and finds two at the same time."""

    gate: threading.Event = field(default_factory=threading.Event)
    began: threading.Event = field(default_factory=threading.Event)
    calls: list[str] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    inside: int = 0
    overlapped: bool = False

    def enter(self, name: str) -> None:
        self.inside += 1
        self.overlapped |= self.inside > 1
        self.threads.add(threading.get_ident())
        self.calls.append(name)

    def initialize(self, context: ChannelContext) -> None:
        self.enter("initialize")
        self.inside -= 1

    def process(self, context: ChannelContext, records: object) -> None:
        self.enter("process")
        self.began.set()
        assert self.gate.wait(20)
        self.inside -= 1

    def shutdown(self, context: ChannelContext) -> None:
        self.enter("shutdown")
        self.inside -= 1

    def sink(self) -> ProcessorSink:
        factory = SimpleProcessorFactory(self.process, initialize=self.initialize, shutdown=self.shutdown)
        return patient(factory)


def patient(factory: SimpleProcessorFactory) -> ProcessorSink:
    """A sink that waits longer than any test, and does not end the process."""
    return ProcessorSink(factory, patience=20, on_hang=lambda channel_id: None)


async def soon(condition: Callable[[], bool]) -> None:
    await until(condition, 10)


@pytest.mark.parametrize("end", [ChannelStatus.CLOSE, ChannelStatus.TERMINATED, ChannelStatus.CLOSING, None])
async def test_g08_shutdown_waits_for_the_records_under_way(end: ChannelStatus | None) -> None:
    """Go calls ShutdownFunc beside a running ProcessFunc when a channel is taken away; ours calls it after."""
    book = Book()
    stand = Stand(Service(PAGES), book.sink(), **SHORT)
    stand.open()
    await soon(book.began.is_set)

    if end is None:
        stand.channel.feed(Vanished())
    else:
        stand.notify(end, 2)
    await asyncio.sleep(0.15)  # longer than D
    assert book.calls == ["initialize", "process"]
    book.gate.set()
    await soon(lambda: book.inside == 0 and len(book.calls) == 3)

    assert book.calls == ["initialize", "process", "shutdown"]
    assert not book.overlapped
    await stand.close()


async def test_g08_a_shutdown_that_is_a_coroutine_waits_for_a_function_under_way() -> None:
    """The same where one runs in the loop and the other in a thread, which cannot be cancelled."""
    book = Book()

    class Mixed:
        initialize, process = (
            book.initialize,
            staticmethod(lambda context, records, confirm: book.process(context, records)),
        )

        async def shutdown(self, context: ChannelContext) -> None:
            book.shutdown(context)

    class Factory(SimpleProcessorFactory):
        def create(self, context: ChannelContext) -> object:  # type: ignore[override]
            return Mixed()

    stand = Stand(Service(PAGES), patient(Factory(book.process)), **SHORT)
    stand.open()
    await soon(book.began.is_set)

    stand.channel.feed(Vanished())
    await asyncio.sleep(0.15)
    assert book.calls == ["initialize", "process"]
    book.gate.set()
    await soon(lambda: book.calls == ["initialize", "process", "shutdown"])

    assert not book.overlapped
    await stand.close()


async def test_g08_a_worker_that_ends_meanwhile_leaves_no_processor_without_its_shutdown() -> None:
    """Whoever waits for a processor's shutdown may be cancelled, once and again: it comes, and after the records."""
    book = Book()
    sink = book.sink()
    stand = Stand(Service(PAGES), sink, **SHORT)
    stand.open()
    await soon(book.began.is_set)

    stand.channel.feed(Vanished())
    await asyncio.sleep(0.05)
    stand.cancel()
    await asyncio.sleep(0.05)
    assert book.calls == ["initialize", "process"]
    book.gate.set()
    await asyncio.wait_for(sink.close(), 10)

    assert book.calls == ["initialize", "process", "shutdown"]


async def test_g08_the_next_processor_of_a_channel_waits_for_the_last_ones_shutdown() -> None:
    """In Go a channel that comes back is processed beside its own ShutdownFunc; ours begins when that has returned."""
    book, slow, began = Book(), threading.Event(), threading.Event()
    book.gate.set()

    def shutdown(context: ChannelContext) -> None:
        book.enter("shutdown")
        began.set()
        assert slow.wait(20)
        book.inside -= 1

    factory = SimpleProcessorFactory(book.process, initialize=book.initialize, shutdown=shutdown)
    sink = patient(factory)
    stand = Stand(Service({"t0": page(1, "t1", False), "t1": page(0, "t1", False)}), sink, **SHORT)
    previous = stand.open()
    await soon(lambda: previous.progress.rows == 1)

    previous.feed(Vanished())
    await soon(began.is_set)
    stand.open(previous=previous)
    await asyncio.sleep(0.15)
    assert book.calls == ["initialize", "process", "shutdown"]
    slow.set()
    await soon(lambda: book.calls[3:5] == ["initialize", "process"])

    assert not book.overlapped
    await stand.close()


ERRORS = [RuntimeError("no"), ProcessorFailed("no"), StopIteration(), asyncio.CancelledError(), KeyError("x")]


@pytest.mark.looptime
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_j03_a_channel_that_cannot_be_set_up_is_given_back(error: BaseException) -> None:
    """Java loses an error of a channel's set-up, and the channel does nothing for ever; ours reports CLOSE and why."""
    service = Service(PAGES)
    sink = Recorder(service.events, begin_error=RuntimeError("no") if isinstance(error, StopIteration) else error)
    stand = Stand(service, sink)
    stand.open()

    assert (await stand.over()).status is ChannelStatus.CLOSE
    assert stand.channel.progress.error
    await stand.close()


@pytest.mark.parametrize("callback", ["initialize", "process"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_j03_whatever_a_function_raises_the_channel_is_given_back(error: BaseException, callback: str) -> None:
    """Java's channel stays RUNNING after an error nobody sees; ours ends with any, also those asyncio treats apart."""

    def raises(*arguments: object) -> None:
        raise error

    callbacks = {"process": lambda *arguments: None, callback: raises}
    service = Service(PAGES)
    stand = Stand(service, patient(SimpleProcessorFactory(**callbacks)), **SHORT)
    stand.open()

    await soon(lambda: stand.channel.is_over)
    assert stand.channel.channel.status is ChannelStatus.CLOSE
    assert type(error).__name__ in (stand.channel.progress.error or "")
    await stand.close()


@pytest.mark.looptime
@pytest.mark.parametrize("callback", ["initialize", "process"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_j03_whatever_a_coroutine_raises_the_channel_is_given_back(error: BaseException, callback: str) -> None:
    """The same of coroutines: a cancellation of their own making must not be taken for one of the channel."""

    async def raises(*arguments: object) -> None:
        await asyncio.sleep(0.01)
        raise error

    async def fine(*arguments: object) -> None:
        return None

    callbacks = {"process": fine, callback: raises}
    service = Service(PAGES)
    stand = Stand(service, patient(SimpleProcessorFactory(**callbacks)))
    stand.open()

    assert (await stand.over()).status is ChannelStatus.CLOSE
    await stand.close()


async def test_j06_a_channels_end_is_no_other_channels_business() -> None:
    """Java has one processor for all channels, shut down when any closes; ours has one each, ended with its own."""
    book, other = Book(), Book()
    book.gate.set()
    made: list[str] = []

    class Factory(SimpleProcessorFactory):
        def create(self, context: ChannelContext) -> object:  # type: ignore[override]
            made.append(context.channel_id)
            mine = book if context.channel_id == "c1" else other
            return SimpleProcessorFactory(mine.process, initialize=mine.initialize, shutdown=mine.shutdown).create(
                context
            )

    sink = patient(Factory(book.process))
    short, long = Stand(Service(PAGES), sink, **SHORT), Stand(Service(PAGES), sink, **SHORT)
    short.open(ChannelId("c1"))
    long.open(ChannelId("c2"))
    await soon(other.began.is_set)

    await soon(lambda: short.channel.is_over)
    assert book.calls == ["initialize", "process", "process", "shutdown"]
    assert other.calls == ["initialize", "process"]
    other.gate.set()
    await soon(lambda: long.channel.is_over)

    assert other.calls == ["initialize", "process", "process", "shutdown"]
    assert made == ["c1", "c2"]
    await short.close()
    await long.close()


async def test_j07_what_threads_confirm_changes_a_channel_in_the_loop_alone() -> None:
    """Java's channel is written by several threads; ours only by the loop's, whoever calls `confirm` and how often."""
    confirms: list[Confirm] = []
    changed_by: set[int] = set()

    def process(context: ChannelContext, records: object, confirm: Confirm) -> None:
        confirms.append(confirm)

    def watch(frame: object, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name in ("page_confirmed", "confirmed", "_settle"):  # type: ignore[attr-defined]
            changed_by.add(threading.get_ident())

    sink = patient(SimpleProcessorFactory(process, manual_checkpoints=True))
    stand = Stand(Service(PAGES), sink, **SHORT)
    stand.open()
    await soon(lambda: len(confirms) == 2)
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        threads = [threading.Thread(target=confirm) for confirm in confirms * 5]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        await soon(lambda: stand.channel.is_over)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)

    assert stand.channel.channel.status is ChannelStatus.TERMINATED
    assert changed_by == {threading.get_ident()}
    await stand.close()
