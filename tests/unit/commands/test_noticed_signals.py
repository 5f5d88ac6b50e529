"""Signals beside an event loop that hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from ots_tunnel.commands.worker_process.noticed_signals import noticed_signals
from ots_tunnel.forks.signals import former_handlers_for_children
from tests.support.waiting import until


@asynccontextmanager
async def handled(number: signal.Signals, call: Callable[[], object]) -> AsyncIterator[None]:
    """The running loop calls a function at this signal."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(number, call)
    try:
        yield
    finally:
        loop.remove_signal_handler(number)


async def test_a_signal_is_noticed_while_the_loop_hangs_and_reaches_it_later() -> None:
    noticed, handler_calls = threading.Event(), list[None]()

    async with handled(signal.SIGTERM, lambda: handler_calls.append(None)):
        with noticed_signals((signal.SIGTERM,), noticed.set):
            os.kill(os.getpid(), signal.SIGTERM)
            assert noticed.wait(10)  # the loop hangs here
            assert handler_calls == []
            await until(lambda: len(handler_calls) == 1)

        os.kill(os.getpid(), signal.SIGTERM)
        await until(lambda: len(handler_calls) == 2)


async def test_signals_of_the_users_code_are_passed_on_alone() -> None:
    noticed, handler_calls = threading.Event(), list[None]()

    async with handled(signal.SIGUSR1, lambda: handler_calls.append(None)):
        with noticed_signals((signal.SIGTERM,), noticed.set):
            os.kill(os.getpid(), signal.SIGUSR1)
            await until(lambda: len(handler_calls) == 1)

    assert not noticed.is_set()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_the_users_code_has_forked_keeps_nothing_open() -> None:
    with noticed_signals((signal.SIGTERM,), lambda: None):
        (thread,) = (each for each in threading.enumerate() if each.name == "signals")
        child = os.fork()
        if not child:
            signal.pause()
    try:
        assert not thread.is_alive()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
async def test_a_signal_of_a_child_that_the_users_code_has_forked_ends_it_and_is_not_the_workers() -> None:
    """`Pool.terminate` sends it: the loop's handler in the child would pass it to this process, and ignore it."""
    noticed, handler_calls = threading.Event(), list[None]()

    with former_handlers_for_children():
        async with handled(signal.SIGTERM, lambda: handler_calls.append(None)):
            with noticed_signals((signal.SIGTERM,), noticed.set):
                child = os.fork()
                if not child:
                    signal.pause()
                    os._exit(0)
                os.kill(child, signal.SIGTERM)
                _, status = await asyncio.to_thread(os.waitpid, child, 0)

    assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM
    assert (noticed.is_set(), handler_calls) == (False, [])


class _Left(Exception):
    """A child leaves the block."""


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
async def test_a_child_that_leaves_by_an_exception_leaves_the_signals_of_its_parent_alone() -> None:
    """`sys.exit` in a child: it ended the parent's thread, and no signal was noticed any more."""
    noticed, handler_calls = threading.Event(), list[None]()

    async with handled(signal.SIGTERM, lambda: handler_calls.append(None)):
        try:
            with noticed_signals((signal.SIGTERM,), noticed.set):
                child = os.fork()
                if not child:
                    raise _Left
                await asyncio.to_thread(os.waitpid, child, 0)
                os.kill(os.getpid(), signal.SIGTERM)
                assert await asyncio.to_thread(noticed.wait, 10)
                await until(lambda: len(handler_calls) == 1)
        except _Left:
            os._exit(0)
