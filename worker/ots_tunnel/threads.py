"""Daemon threads for blocking calls, a few for each purpose.

A call that hangs, such as a write to a volume that does not answer, keeps its thread forever. It must not take the
threads that others wait for, and must not keep the process from ending. So every purpose has threads of its own, and
all of them are daemons; those of asyncio's default executor are neither.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

R = TypeVar("R")

#: Seconds after which a thread without a call ends.
IDLE_SECONDS = 10.0


class DaemonThreads:
    """Runs blocking calls in a bounded number of threads, which are started when they are needed.

    Args:
        name: of the threads.
        limit: calls that run at the same time, 1 or more; others wait.
        idle_seconds: a thread without a call ends after so long.
    """

    def __init__(self, name: str, limit: int, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._name = name
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        #: Threads that wait for a call, without those for which one is queued. Changed under the lock, together with
        #: the look into the queue: a later call would be left to a thread that is counted and does not wait.
        self._idle = 0

    def __repr__(self) -> str:
        return f"DaemonThreads({self._name}, {self._threads} of {self._limit})"

    async def run(self, call: Callable[..., R], *args: Any) -> R:
        """Await a call. A cancelled caller stops waiting: a call that runs goes on, one that waits is dropped."""
        return await asyncio.wrap_future(self.submit(call, *args))

    def submit(self, call: Callable[..., R], *args: Any) -> Future[R]:
        """Begin a call; the future holds its result.

        Raises:
            RuntimeError: the system starts no thread for it; it is not made.
        """
        future: Future[R] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = call(*args)
            except BaseException as error:
                # the future carries whatever the call raised to its caller; the thread goes on
                future.set_exception(error)
            else:
                future.set_result(result)

        with self._lock:
            if self._idle:
                self._idle -= 1
            elif self._threads < self._limit:
                # before anything is counted or queued: a call that has failed for its caller must not be made later
                threading.Thread(target=self._serve, name=f"{self._name} {self._threads + 1}", daemon=True).start()
                self._threads += 1
            self._calls.put(work)
        return future

    def _serve(self) -> None:
        while (call := self._next()) is not None:
            call()
            del call  # otherwise its arguments stay in memory until the next call

    def _next(self) -> Callable[[], None] | None:
        """Wait for a call; None for a thread that ends."""
        while True:
            with self._lock:
                try:
                    return self._calls.get_nowait()
                except queue.Empty:
                    self._idle += 1
            try:
                return self._calls.get(timeout=self._idle_seconds)
            except queue.Empty:
                if self._ends():
                    return None

    def _ends(self) -> bool:
        """Whether an idle thread ends; it does not if a call was just given to it."""
        with self._lock:
            if not self._idle:
                return False
            self._idle -= 1
            if not self._calls.empty():
                return False
            self._threads -= 1
            return True
