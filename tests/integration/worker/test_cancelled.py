"""A worker that is cancelled from outside while it drains: `run` ends with the cancellation, wherever it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any

import pytest

from ots_tunnel.errors import TunnelError
from ots_tunnel.model import TunnelType
from tests.support.emulator.virtual_scene import KEYS, VirtualScene
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime


class Stepping(Coroutine[Any, Any, Any]):
    """A coroutine that calls a function before each wait."""

    def __init__(self, coro: Coroutine[Any, Any, Any], waits: Callable[[], None]) -> None:
        self._coro = coro
        self._waits = waits

    def send(self, value: Any) -> Any:
        found = self._coro.send(value)
        self._waits()
        return found

    def throw(self, *error: Any) -> Any:
        found = self._coro.throw(*error)
        self._waits()
        return found

    def close(self) -> None:
        self._coro.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coro.__await__()


async def drained_and_cancelled(at: int, write_seconds: float) -> bool:
    """Drain a worker and cancel `run` at a number of waits of all its tasks; False if the drain was over before."""
    scene = VirtualScene()
    await scene.create_table(partitions=2)
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.Stream)
    sink = RecordingSink(delay=write_seconds)
    worker = scene.worker(sink, drain=20, timeout=20, interval=5)
    loop = asyncio.get_running_loop()
    left, cancelled = [-1], [False]

    def wait() -> None:
        left[0] -= 1
        if left[0] == 0 and not running.done():
            cancelled[0] = True
            loop.call_soon(running.cancel)

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        return asyncio.Task(Stepping(coro, wait), loop=loop, **options)

    loop.set_task_factory(factory)
    try:
        running = asyncio.create_task(worker.run())
        await until(lambda: len(scene.owners()) == 2)
        await scene.put(KEYS)
        await until(lambda: sink.writing)
        left[0] = at + 1
        worker.drain()
        with suppress(asyncio.CancelledError, TunnelError):
            await asyncio.wait_for(asyncio.shield(running), 200)
    finally:
        loop.set_task_factory(None)
    assert running.done()
    if cancelled[0]:
        assert running.cancelled(), f"the cancellation at wait {at} was swallowed"
        assert sink.closed
    return cancelled[0]


@pytest.mark.parametrize("write_seconds", [3, 300])
async def test_a_cancellation_is_not_swallowed_wherever_the_drain_waits(write_seconds: float) -> None:
    """A write that ends, and one that the drain has to abandon and that stays in doubt."""
    reached = 0
    while await drained_and_cancelled(reached, write_seconds):
        reached += 1

    assert reached > 10, "a drain has at least so many waits"
