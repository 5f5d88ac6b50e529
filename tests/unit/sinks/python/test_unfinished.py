"""Callbacks whose return does not say that their records are processed: no checkpoint may pass them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from ots_tunnel.errors import ProcessorFailed
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.processor import ChannelContext, Confirm, SimpleProcessorFactory
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.python.sink import ManualProcessorSink, ProcessorSink
from tests.support.guards import OpenGuard

CHANNEL = ChannelId("c1")
BATCH = Batch(CHANNEL, ChannelType.STREAM, [])


async def _store() -> None:
    """Store a record."""


async def _async_generator(context: ChannelContext, records: Sequence[Record]) -> AsyncIterator[None]:
    yield


def _generator(context: ChannelContext, records: Sequence[Record]) -> Iterator[None]:
    yield


def _mapped(context: ChannelContext, records: Sequence[Record]) -> object:
    return map(print, records)


def _handed_to_a_pool(context: ChannelContext, records: Sequence[Record]) -> object:
    return Future[None]()


async def _not_gathered(context: ChannelContext, records: Sequence[Record]) -> object:
    return [asyncio.ensure_future(_store())]


def _calls(process: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does not show what `process` is, such as one with a decorator."""

    def call(*arguments: Any) -> Any:
        return process(*arguments)

    return call


@pytest.mark.parametrize(
    ("process", "found"),
    [
        (_async_generator, "async_generator"),
        (_generator, "generator"),
        (_mapped, "map"),
        (_handed_to_a_pool, "Future"),
        (_not_gathered, "list of Task"),
    ],
)
async def test_records_are_not_confirmed_by_a_result_that_is_not_done(process: Callable[..., Any], found: str) -> None:
    sink = ProcessorSink(SimpleProcessorFactory(_calls(process)))
    await sink.begin(CHANNEL, ChannelType.STREAM, Token(""))

    with pytest.raises(ProcessorFailed, match=f"^process returned a {found}, .* allowed is None or an awaitable"):
        await sink.write(BATCH, OpenGuard())

    await sink.end(CHANNEL, abandoned=True)
    assert sink.contact().confirmed is None


async def test_a_coroutine_that_a_coroutine_returns_is_awaited() -> None:
    stored: list[str] = []

    async def store() -> None:
        stored.append("a")

    async def process(context: ChannelContext, records: Sequence[Record]) -> Any:
        return store()

    sink = ProcessorSink(SimpleProcessorFactory(process))
    await sink.begin(CHANNEL, ChannelType.STREAM, Token(""))

    await sink.write(BATCH, OpenGuard())

    await sink.end(CHANNEL, abandoned=False)
    assert stored == ["a"]


async def test_a_figure_that_is_returned_says_nothing() -> None:
    def process(context: ChannelContext, records: Sequence[Record]) -> Any:
        return len(records)

    sink = ProcessorSink(SimpleProcessorFactory(process))
    await sink.begin(CHANNEL, ChannelType.STREAM, Token(""))

    await sink.write(BATCH, OpenGuard())

    await sink.end(CHANNEL, abandoned=False)


async def test_with_manual_checkpoints_the_confirmation_counts_and_not_a_future() -> None:
    def process(context: ChannelContext, records: Sequence[Record], confirm: Confirm) -> Any:
        confirm()
        return Future[None]()

    sink = ManualProcessorSink(SimpleProcessorFactory(process, manual_checkpoints=True))
    await sink.begin(CHANNEL, ChannelType.STREAM, Token(""))

    await (await sink.take(BATCH, OpenGuard()))

    await sink.end(CHANNEL, abandoned=False)


async def test_with_manual_checkpoints_a_generator_that_never_runs_is_named() -> None:
    def process(context: ChannelContext, records: Sequence[Record], confirm: Confirm) -> Any:
        confirm()
        yield

    sink = ManualProcessorSink(SimpleProcessorFactory(_calls(process), manual_checkpoints=True))
    await sink.begin(CHANNEL, ChannelType.STREAM, Token(""))

    with pytest.raises(ProcessorFailed, match="process returned a generator"):
        _ = await sink.take(BATCH, OpenGuard())

    await sink.end(CHANNEL, abandoned=True)
