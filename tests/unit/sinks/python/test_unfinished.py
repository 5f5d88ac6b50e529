"""Callbacks whose return does not say that their records are processed: no checkpoint may pass them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from multiprocessing.pool import ThreadPool
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from ots_tunnel.errors import ProcessorFailed
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.processor import ChannelContext, Confirm, SimpleProcessorFactory
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.python.sink import ManualProcessorSink, ProcessorSink
from ots_tunnel.sinks.python.unfinished import unfinished
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
    return [asyncio.ensure_future(asyncio.Event().wait())]


def _each_handed_to_a_pool(context: ChannelContext, records: Sequence[Record]) -> object:
    return [Future[None]()]


def _by_key(context: ChannelContext, records: Sequence[Record]) -> object:
    return {"a": Future[None]()}


def _keyed_by_future(context: ChannelContext, records: Sequence[Record]) -> object:
    return {Future[None](): "a"}


def _futures_of_keys(context: ChannelContext, records: Sequence[Record]) -> object:
    return {"a": Future[None]()}.values()


def _queued(context: ChannelContext, records: Sequence[Record]) -> object:
    return deque([Future[None]()])


def _one_failed(context: ChannelContext, records: Sequence[Record]) -> object:
    failed = Future[None]()
    failed.set_exception(ValueError("not stored"))
    return (_ended(), failed)


def _generators(context: ChannelContext, records: Sequence[Record]) -> object:
    return [_generator(context, records)]


async def _gathered_with_failures(context: ChannelContext, records: Sequence[Record]) -> object:
    async def store() -> None:
        raise OSError("not stored")

    return await asyncio.gather(_store(), store(), return_exceptions=True)


async def _waited_too_briefly(context: ChannelContext, records: Sequence[Record]) -> object:
    return await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=0.0)


def _ended() -> Future[None]:
    ended = Future[None]()
    ended.set_result(None)
    return ended


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
        (_each_handed_to_a_pool, "list of Future"),
        (_by_key, "dict of Future"),
        (_keyed_by_future, "dict of Future"),
        (_futures_of_keys, "dict_values of Future"),
        (_queued, "deque of Future"),
        (_one_failed, "tuple of Future"),
        (_generators, "list of generator"),
        (_gathered_with_failures, "list of OSError"),
        (_waited_too_briefly, "tuple of set of Task"),
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


def test_work_of_a_pool_of_processes_or_threads_is_done_when_it_is_ready() -> None:
    begin = Event()
    with ThreadPool(1) as pool:
        result = pool.apply_async(begin.wait, (10.0,))
        assert unfinished(result) == "ApplyResult"
        assert unfinished(result, is_confirmed_later=True) == ""

        begin.set()
        result.wait(10.0)
        assert unfinished(result) == ""

        failed = pool.map_async(int, ["a"])
        failed.wait(10.0)
        assert unfinished(failed) == "MapResult"


async def test_work_that_has_ended_is_done_whoever_did_it() -> None:
    task = asyncio.ensure_future(_store())
    cancelled = asyncio.ensure_future(_store())
    cancelled.cancel()
    waited = await asyncio.wait([task, cancelled])

    assert unfinished([task]) == ""
    assert unfinished(_ended()) == ""
    assert unfinished(waited) == "tuple of set of Task"


def test_a_cursor_and_a_file_are_no_work(tmp_path: Path) -> None:
    """A function of one line returns what the database's driver does."""
    with sqlite3.connect(":memory:") as database, (tmp_path / "a").open("w") as file:
        assert unfinished(database.execute("CREATE TABLE stored (a)")) == ""
        assert unfinished(file) == ""
    database.close()


def test_a_container_that_holds_itself_is_looked_into_only_so_deep() -> None:
    result: list[object] = []
    result.append(result)

    assert unfinished(result) == ""


class _Looked:
    """Counts how often one of its kind is looked at; its type is looked at without that."""

    looks = 0

    @property
    def __class__(self) -> type:
        _Looked.looks += 1
        return type(self)


@pytest.mark.parametrize("container", [list, lambda items: [{"a": item} for item in items]], ids=["items", "dicts"])
def test_the_items_of_a_page_are_not_looked_at_one_by_one(container: Callable[[list[_Looked]], object]) -> None:
    """A function may return an item for each record of a page, and the event loop waits for the look at them."""
    _Looked.looks = 0

    assert unfinished(container([_Looked() for _ in range(1000)])) == ""

    assert _Looked.looks == 0
