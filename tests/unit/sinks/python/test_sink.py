"""Confirmations by a user's code that come after the worker has ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from ots_tunnel.errors import ProcessorFailed
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.processor import ChannelContext, Confirm, SimpleProcessorFactory
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.python.sink import ManualProcessorSink, ProcessorSink
from tests.support.guards import OpenGuard
from tests.support.waiting import until

CHANNEL = ChannelId("c1")


def test_a_confirmation_after_the_worker_has_ended_does_nothing() -> None:
    confirms: list[Confirm] = []

    def process(context: ChannelContext, records: Sequence[Record], confirm: Confirm | None) -> None:
        assert confirm is not None
        confirms.append(confirm)

    async def work() -> None:
        sink = ManualProcessorSink(SimpleProcessorFactory(process, manual_checkpoints=True))
        await sink.begin(CHANNEL, ChannelType.STREAM, Token(""))
        _ = await sink.take(Batch(CHANNEL, ChannelType.STREAM, []), OpenGuard())
        await sink.end(CHANNEL, abandoned=True)

    asyncio.run(work())

    confirms[0]()


async def test_a_factory_made_of_the_simple_one_makes_processors_in_its_own_way() -> None:
    threads: list[int] = []

    class Own(SimpleProcessorFactory):
        async def create(self, context: ChannelContext) -> Any:
            return await super().create(context)

    class Connecting(SimpleProcessorFactory):
        def create(self, context: ChannelContext) -> Any:
            threads.append(threading.get_ident())
            return super().create(context)

    for kind in (Own, Connecting):
        sink = ProcessorSink(kind(lambda context, records: None))
        await sink.begin(CHANNEL, ChannelType.STREAM, Token(""))
        await sink.end(CHANNEL, abandoned=True)

    assert threads
    assert threading.get_ident() not in threads


class Slow:
    """A factory that needs a while, in whichever thread it is asked."""

    custom_value = None
    manual_checkpoints = True

    def __init__(self, made: Any = None) -> None:
        self.made = made
        self.threads: list[int] = []
        self.may_end = threading.Event()

    def create(self, context: ChannelContext) -> Any:
        self.threads.append(threading.get_ident())
        assert self.may_end.wait(10)
        if self.made is None:
            raise ValueError("no database")
        return self.made


async def test_a_processor_that_is_made_too_late_is_shut_down() -> None:
    ended = asyncio.Event()

    async def shutdown(context: ChannelContext) -> None:
        ended.set()

    made = await SimpleProcessorFactory(lambda *_: None, shutdown=shutdown).create(
        ChannelContext(CHANNEL, ChannelType.STREAM, Token(""), None)
    )
    factory = Slow(made)
    sink = ManualProcessorSink(factory)
    beginning = asyncio.create_task(sink.begin(CHANNEL, ChannelType.STREAM, Token("")))
    await until(lambda: factory.threads)
    beginning.cancel()
    factory.may_end.set()

    await asyncio.wait_for(ended.wait(), 10)
    with pytest.raises(asyncio.CancelledError):
        await beginning


async def test_a_processor_that_is_made_slowly_keeps_no_heartbeat_from_being_sent() -> None:
    factory = Slow()
    sink = ManualProcessorSink(factory)
    beginning = asyncio.create_task(sink.begin(CHANNEL, ChannelType.STREAM, Token("")))
    await until(lambda: factory.threads)

    assert factory.threads != [threading.get_ident()]
    factory.may_end.set()
    with pytest.raises(ProcessorFailed, match="create raised ValueError: no database"):
        await beginning


async def test_a_processor_that_is_still_being_made_hangs_a_channel_that_is_taken_away() -> None:
    factory, hung = Slow(), asyncio.Queue[ChannelId]()
    sink = ManualProcessorSink(factory, patience=0.05, on_hang=hung.put_nowait)
    beginning = asyncio.create_task(sink.begin(CHANNEL, ChannelType.STREAM, Token("")))
    await until(lambda: factory.threads)
    beginning.cancel()

    assert await asyncio.wait_for(hung.get(), 10) == CHANNEL
    factory.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await beginning


async def test_a_shutdown_that_raises_a_time_out_of_its_own_does_not_count_as_hanging() -> None:
    def process(context: ChannelContext, records: Sequence[Record], confirm: Confirm | None) -> None:
        """Take the records."""

    def shutdown(context: ChannelContext) -> None:
        raise TimeoutError("the user's connection")

    hung: list[ChannelId] = []
    sink = ManualProcessorSink(
        SimpleProcessorFactory(process, shutdown=shutdown, manual_checkpoints=True), on_hang=hung.append
    )
    await sink.begin(CHANNEL, ChannelType.STREAM, Token(""))

    await sink.end(CHANNEL, abandoned=False)

    assert hung == []
