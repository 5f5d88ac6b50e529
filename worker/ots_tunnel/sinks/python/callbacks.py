"""Calls of users' code, one at a time: functions in a separate thread, coroutines in the event loop.

The thread is a daemon: a function that hangs does not stop the process from ending, as an executor's thread would.
"""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any

from ots_tunnel.forks.ending import leaving_ends_a_child


def keeping(function: Callable[..., Any], kept: list[Any]) -> Callable[..., Any]:
    """The function, which adds what it returns to a list: its caller may be cancelled while it runs in the thread."""
    if asyncio.iscoroutinefunction(function):

        async def coroutine(*arguments: Any) -> None:
            await _keep(function(*arguments), kept)

        return coroutine

    def called(*arguments: Any) -> Awaitable[None] | None:
        result = function(*arguments)
        if inspect.isawaitable(result):
            return _ToKeep(result, kept)  # a coroutine function behind a decorator, for example
        kept.append(result)
        return None

    return called


@dataclass(frozen=True, slots=True)
class _ToKeep:
    """What is awaited and then kept, or is closed unawaited."""

    result: Awaitable[Any]
    kept: list[Any]

    def __await__(self) -> Generator[Any, Any, None]:
        return _keep(self.result, self.kept).__await__()

    def close(self) -> None:
        if inspect.iscoroutine(self.result):
            self.result.close()


async def _keep(result: Any, kept: list[Any]) -> None:
    while inspect.isawaitable(result):
        result = await result
    kept.append(result)


class CallbackThread:
    """Runs the callbacks of one channel one after the other.

    A coroutine function runs in the event loop. Any other function runs in the thread. What either returns is awaited
    in the event loop, as long as it can be.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._running: asyncio.Task[Any] | None = None

    async def call(self, callback: Callable[..., Any], *arguments: Any) -> Any:
        """Run one callback and return its result; a function keeps running when this call is cancelled, see `idle`.

        Raises:
            Exception: what the callback raised.
        """
        self._running = asyncio.create_task(self._run(callback, arguments), name=self._name)
        result = await asyncio.shield(self._running)
        self._running = None  # the result may hold the records
        return result

    async def idle(self, seconds: float) -> bool:
        """Wait until the callback under way has returned, a coroutine being cancelled; False after `seconds`."""
        if self._running is None:
            return True
        if not self._running.done():
            self._running.cancel()
            await asyncio.wait([self._running], timeout=seconds)
        if self._running.done() and not self._running.cancelled():
            self._running.exception()  # retrieved: its channel has failed already
        return self._running.done()

    def close(self) -> None:
        """End the thread once its present call has returned."""
        self._calls.put(None)

    async def _run(self, callback: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        result: Any
        with leaving_ends_a_child(awaits=True):
            if asyncio.iscoroutinefunction(callback):
                result = callback(*arguments)
            else:
                result = await _returned(self._in_thread(lambda: callback(*arguments)))
            while inspect.isawaitable(result):
                result = await _awaited(result)
        return result

    def _in_thread(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        if self._thread is None:
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            thread.start()  # where the system starts none, the next call tries again
            self._thread = thread
        future: asyncio.Future[Any] = self._loop.create_future()
        self._calls.put((call, future))
        return future

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            call, future = item
            try:
                with leaving_ends_a_child():
                    result, error = call(), None
            except BaseException as raised:
                # the user's code may raise anything; it belongs to the caller, not to this thread
                result, error = None, raised if _fits_a_future(raised) else _as_error(raised)
            try:
                self._loop.call_soon_threadsafe(_settle, future, result, error)
            except RuntimeError:
                return  # the loop is closed: no caller is left
            del item, call, future, result, error  # otherwise the records stay in memory until the next call


async def _returned(called: asyncio.Future[Any]) -> Any:
    """Result of a call in the thread; cancellation waits for it, since threads cannot be cancelled."""
    cancelled: asyncio.CancelledError | None = None
    while not called.done():
        try:
            await asyncio.wait([called])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return called.result()
    if called.exception() is None and isinstance(called.result(), Coroutine | _ToKeep):
        called.result().close()  # the cancelled caller no longer awaits it
    raise cancelled


async def _awaited(result: Awaitable[Any]) -> Any:
    try:
        return await result
    except asyncio.CancelledError as raised:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _as_error(raised) from raised  # the task is not cancelled: the callback itself raised it
    except (Exception, GeneratorExit):
        raise
    except BaseException as raised:  # `sys.exit` would end the loop, and the process as if all were done
        raise _as_error(raised) from raised


def _fits_a_future(raised: BaseException) -> bool:
    # A future cannot hold a StopIteration, and asyncio interprets what is no Exception, such as CancelledError.
    return isinstance(raised, Exception) and not isinstance(raised, StopIteration)


def _as_error(raised: BaseException) -> RuntimeError:
    return RuntimeError(f"the callback raised {type(raised).__name__}: {raised}")


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
