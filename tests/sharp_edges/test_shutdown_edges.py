"""Shutdown of a processor: once, after its last records, before the channel's next processor."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ots_tunnel.model import ChannelStatus
from ots_tunnel.processor import ChannelContext, SimpleProcessorFactory
from ots_tunnel.protocol.channel import Vanished
from tests.sharp_edges.book import PAGES, SHORT, Book, patient
from tests.support.channel_stand import Service, Stand, page
from tests.support.waiting import until


@pytest.mark.parametrize("end", [ChannelStatus.CLOSE, ChannelStatus.TERMINATED, ChannelStatus.CLOSING, None])
async def test_g08_shutdown_waits_for_the_records_under_way(end: ChannelStatus | None) -> None:
    """Go calls ShutdownFunc beside a running ProcessFunc when a channel is taken away; ours calls it after."""
    book = Book()
    stand = Stand(Service(PAGES), book.sink(), **SHORT)
    stand.open()
    await until(book.began.is_set)

    if end is None:
        stand.channel.feed(Vanished())
    else:
        stand.notify(end, 2)
    await asyncio.sleep(0.15)  # longer than D
    assert book.calls == ["initialize", "process"]
    book.gate.set()
    await until(lambda: book.inside == 0 and len(book.calls) == 3)

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
    await until(book.began.is_set)

    stand.channel.feed(Vanished())
    await asyncio.sleep(0.15)
    assert book.calls == ["initialize", "process"]
    book.gate.set()
    await until(lambda: book.calls == ["initialize", "process", "shutdown"])

    assert not book.overlapped
    await stand.close()


async def test_g08_a_worker_that_ends_meanwhile_leaves_no_processor_without_its_shutdown() -> None:
    """Whoever waits for a processor's shutdown may be cancelled, once and again: it comes, and after the records."""
    book = Book()
    sink = book.sink()
    stand = Stand(Service(PAGES), sink, **SHORT)
    stand.open()
    await until(book.began.is_set)

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
    await until(lambda: previous.progress.rows == 1)

    previous.feed(Vanished())
    await until(began.is_set)
    stand.open(previous=previous)
    await asyncio.sleep(0.15)
    assert book.calls == ["initialize", "process", "shutdown"]
    slow.set()
    await until(lambda: book.calls[3:5] == ["initialize", "process"])

    assert not book.overlapped
    await stand.close()
