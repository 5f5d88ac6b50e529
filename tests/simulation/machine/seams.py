"""Where the simulation takes the place of the machine: opening a socket, and threads for blocking calls.

Everything else of the product runs as it is. The replaced functions keep their interface; what they do below it, such
as trying the addresses of a name one beside the other, is tested over real sockets.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from ots_tunnel.sinks.python.callbacks import CallbackThread
from ots_tunnel.threads import DaemonThreads
from ots_tunnel.transport import aio
from ots_tunnel.transport.connecting import CONNECT_DEADLINE
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.network import ClientConnection


def install_seams() -> None:
    """Replace sockets and threads in this interpreter."""
    aio.open_socket = open_socket
    DaemonThreads.submit = submit
    # Private, because the class is a thread and nothing else.
    CallbackThread._in_thread = _in_thread
    threading.Thread.start = _refuse


async def open_socket(
    host: str, port: int, threads: DaemonThreads, deadline: float = CONNECT_DEADLINE
) -> ClientConnection:
    """See `ots_tunnel.transport.connecting.open_socket`: a lookup in a thread, then the connection."""
    async with asyncio.timeout(deadline):
        await threads.run(lambda: None)
        return await _loop().network.open(host, port)


class _Pool:
    """What a `DaemonThreads` does: calls under way, and calls that wait for a thread."""

    def __init__(self) -> None:
        self.busy = 0
        self.waiting: deque[Callable[[], None]] = deque()


_POOLS: WeakKeyDictionary[DaemonThreads, _Pool] = WeakKeyDictionary()


#: Whether a call in a thread is under way: it may wait for a call in another thread.
_IS_IN_THREAD: ContextVar[bool] = ContextVar("in a thread", default=False)


def submit(self: DaemonThreads, call: Callable[..., Any], *args: Any) -> Future[Any]:
    """See `DaemonThreads.submit`: the call runs as a callback a little later, and its thread is busy until then.

    A call that a thread waits for runs at once.
    """
    if _IS_IN_THREAD.get():
        return _called(call, *args)
    loop, pool = _loop(), _POOLS.setdefault(self, _Pool())
    future: Future[Any] = Future()
    limit: int = vars(self)["_limit"]

    def begin() -> None:
        pool.busy += 1
        if not future.set_running_or_notify_cancel():
            end(None)
            return
        loop.run_in_executor(None, _in_a_thread, call, *args).add_done_callback(end)

    def end(done: asyncio.Future[Any] | None) -> None:
        pool.busy -= 1
        if done is not None and (error := done.exception()) is not None:
            future.set_exception(error)
        elif done is not None:
            future.set_result(done.result())
        if pool.waiting and pool.busy < limit:
            pool.waiting.popleft()()

    if pool.busy < limit:
        begin()
    else:
        pool.waiting.append(begin)
    return future


def _in_a_thread(call: Callable[..., Any], *args: Any) -> Any:
    token = _IS_IN_THREAD.set(True)
    try:
        return call(*args)
    finally:
        _IS_IN_THREAD.reset(token)


def _called(call: Callable[..., Any], *args: Any) -> Future[Any]:
    future: Future[Any] = Future()
    try:
        future.set_result(call(*args))
    except Exception as error:
        # the future carries it to the caller, as that of a thread does
        future.set_exception(error)
    return future


def _in_thread(self: CallbackThread, call: Callable[[], Any]) -> asyncio.Future[Any]:
    """See `CallbackThread`: its calls follow each other anyway."""
    return _loop().run_in_executor(None, call)


def _refuse(self: threading.Thread) -> None:
    raise RuntimeError(f"thread {self.name}: a real thread would break the determinism; replace it in tests.simulation")


def _loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop
