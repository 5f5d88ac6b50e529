from __future__ import annotations

import asyncio
import gc
import inspect
import sys
import threading
import weakref
from collections.abc import Coroutine

import pytest

from ots_tunnel.sinks.python.callbacks import CallbackThread, keeping


class Argument:
    """An object that a weak reference can watch."""


async def test_arguments_of_a_call_are_not_held_until_the_next_call() -> None:
    thread = CallbackThread("test")
    argument = Argument()
    held = weakref.ref(argument)
    await thread.call(id, argument)
    del argument
    # The thread releases the arguments after it reports the end of the call; a second, empty call comes after that.
    assert await thread.idle(30)
    await _until_let_go(held)
    thread.close()


async def test_what_a_function_returns_is_kept_once_it_was_awaited() -> None:
    """A coroutine function behind a decorator is a function that returns what can be awaited."""

    async def make() -> str:
        return "made"

    thread = CallbackThread("test")
    for function in (make, lambda: make(), lambda: "made"):
        kept: list[str] = []
        await thread.call(keeping(function, kept))
        assert kept == ["made"]
    thread.close()


def test_a_thread_that_cannot_be_started_is_tried_again_by_the_next_call() -> None:
    """The processor is shut down in it: a call without end would pass for a processor that hangs."""
    called, ended = threading.Event(), threading.Event()

    async def call_twice() -> None:
        calls = CallbackThread("test")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threading.Thread, "start", _refused)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                await calls.call(called.set)
        await calls.call(called.set)
        calls.close()
        ended.set()

    # a loop of its own: a call without end cannot be cancelled either
    threading.Thread(target=lambda: asyncio.run(call_twice()), daemon=True).start()
    assert ended.wait(60)
    assert called.is_set()


def _refused(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def _until_let_go(held: weakref.ref[Argument]) -> None:
    async with asyncio.timeout(30):
        while held() is not None:
            gc.collect()
            await asyncio.sleep(0.01)


@pytest.mark.filterwarnings("error")
async def test_what_a_cancelled_caller_would_have_awaited_is_closed() -> None:
    begun, may_end = threading.Event(), threading.Event()
    made: list[Coroutine[None, None, str]] = []

    async def make() -> str:
        return "made"

    def decorated() -> Coroutine[None, None, str]:
        begun.set()
        may_end.wait(5)
        made.append(make())
        return made[0]

    thread = CallbackThread("test")
    call = asyncio.create_task(thread.call(keeping(decorated, kept := [])))
    await asyncio.to_thread(begun.wait, 5)
    call.cancel()
    idle = asyncio.create_task(thread.idle(5))
    await asyncio.sleep(0)
    may_end.set()
    assert await idle
    thread.close()

    assert kept == []
    assert inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED


async def test_a_coroutine_that_exits_fails_as_a_function_does() -> None:
    """Its SystemExit would end the event loop, and the process with exit code 0."""

    async def leaves() -> None:
        sys.exit(0)

    thread = CallbackThread("test")
    for callback in (leaves, sys.exit):
        with pytest.raises(RuntimeError, match="the callback raised SystemExit"):
            await thread.call(callback)
    thread.close()
