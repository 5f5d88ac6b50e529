"""Daemon threads for blocking calls."""

from __future__ import annotations

import asyncio
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from ots_tunnel.threads import DaemonThreads
from tests.support.waiting import until, wait_until


async def test_calls_return_or_raise() -> None:
    threads = DaemonThreads("test", 2)

    assert await threads.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 7, 0)


async def test_no_more_calls_run_than_the_limit() -> None:
    threads, hang, running = DaemonThreads("test", 2), threading.Event(), threading.Semaphore(0)

    def call() -> None:
        running.release()
        hang.wait(10)

    calls = [asyncio.create_task(threads.run(call)) for _ in range(3)]
    await asyncio.to_thread(lambda: [running.acquire(timeout=5) for _ in range(2)])
    assert not running.acquire(blocking=False)
    assert repr(threads) == "DaemonThreads(test, 2 of 2)"

    hang.set()
    await asyncio.gather(*calls)
    assert running.acquire(blocking=False)


async def test_a_call_that_waits_is_dropped_with_its_caller() -> None:
    threads, hang, ran = DaemonThreads("test", 1), threading.Event(), threading.Event()
    first = asyncio.create_task(threads.run(hang.wait, 10))
    second = asyncio.create_task(threads.run(ran.set))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait((second,))
    hang.set()

    assert await first
    await threads.run(str)
    assert not ran.is_set()


async def test_idle_threads_are_used_again_and_end() -> None:
    threads = DaemonThreads("test", 5, idle_seconds=0.05)
    names = {await threads.run(lambda: threading.current_thread().name) for _ in range(20)}

    assert len(names) <= 5
    await until(lambda: repr(threads) == "DaemonThreads(test, 0 of 5)", what="the thread ends")
    assert await threads.run(str) == ""


def test_calls_are_not_lost_while_threads_end() -> None:
    threads = DaemonThreads("test", 2, idle_seconds=0)

    assert [threads.submit(int, each).result(5) for each in range(2000)] == list(range(2000))
    wait_until(lambda: repr(threads) == "DaemonThreads(test, 0 of 2)", what="the threads end")


class _Late(queue.SimpleQueue[Any]):
    """A queue to which a call comes right after a thread has found it empty."""

    def __init__(self) -> None:
        super().__init__()
        #: Begins the call in another thread; returns when it has begun, or has to wait for the thread.
        self.begin: Callable[[], None] | None = None

    def get_nowait(self) -> Any:
        try:
            return super().get_nowait()
        except queue.Empty:
            begin, self.begin = self.begin, None
            if begin is not None:
                begin()
            raise


def test_a_call_that_comes_while_a_thread_becomes_idle_does_not_cost_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = _Late()
    monkeypatch.setattr(queue, "SimpleQueue", lambda: late)
    threads = DaemonThreads("test", 1, idle_seconds=0.05)
    second: Future[Future[int]] = Future()

    def begin() -> None:
        beginning = threading.Thread(target=lambda: second.set_result(threads.submit(int, "2")))
        beginning.start()
        beginning.join(0.2)

    late.begin = begin
    assert threads.submit(int, "1").result(5) == 1
    assert second.result(5).result(5) == 2
    wait_until(lambda: repr(threads) == "DaemonThreads(test, 0 of 1)", what="the thread ends")

    assert threads.submit(int, "3").result(5) == 3


def test_a_call_that_hangs_does_not_keep_the_process() -> None:
    program = "import time; from ots_tunnel.threads import DaemonThreads; DaemonThreads('t', 1).submit(time.sleep, 60)"

    subprocess.run((sys.executable, "-c", program), check=True, timeout=60)


async def test_a_call_whose_thread_cannot_be_started_fails_and_is_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod has reached its limit of processes; later it has room again."""
    threads, ran = DaemonThreads("test", 1), threading.Event()

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            await threads.run(ran.set)

    async with asyncio.timeout(30):
        assert await threads.run(divmod, 7, 2) == (3, 1)
    assert not ran.is_set()
