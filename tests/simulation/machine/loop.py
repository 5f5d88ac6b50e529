"""An event loop on virtual time: it never waits, and moves its clock to the next timer.

Within a process callbacks run in the order in which asyncio would run them, because code may rely on that. What is
not ordered in reality is drawn by chance: which of several processes runs next, and which of several timers of one
instant comes first. Nothing is parallel: a call in an executor runs a little later, in turn with the loop (`thread`).
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.simulation.machine.determinism import CURRENT
from tests.simulation.machine.process import Process, State
from tests.simulation.machine.thread import ThreadCall

if TYPE_CHECKING:
    from tests.simulation.machine.network import Network

#: Called with the process and asyncio's description of a failure that nobody handled.
OnFailure = Callable[[Process, dict[str, Any]], None]


class Deadlock(RuntimeError):
    """No callback is ready and no timer is left: nothing will ever happen."""


class Livelock(RuntimeError):
    """Callbacks follow each other, and time hardly moves: on a machine this would take a whole core."""


#: Seconds that a round of callbacks takes: a clock that is read twice never stands still.
ROUND_SECONDS = 1e-6
#: Most callbacks in a second.
BUSY_CALLBACKS = 300_000


class OrderedFuture(asyncio.Future[Any]):
    """A future whose hash is its number: sets of futures have the same order in every run."""

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._number = number

    def __hash__(self) -> int:
        return self._number


class OrderedTask(asyncio.Task[Any]):
    """The same for a task."""

    def __init__(self, number: int, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        self._number = number  # first: asyncio puts the task into a set
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop of one region.

    Args:
        chance: decides the order of what happens at the same instant.
    """

    network: Network

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self.now = 0.0
        self._runnable: list[Process] = []
        self._timers: list[tuple[float, float, int, asyncio.TimerHandle, Process, float]] = []
        self._count = 0
        self.callbacks = 0
        #: Callbacks so far, and the time, at the last look for a livelock.
        self._looked = (0, 0.0)
        #: The process of everything that is neither killed nor paused: the network, the service, the faults.
        self.region = Process(self, "region", chance)
        self.on_failure: OnFailure | None = None
        self.set_task_factory(_make_task)

    def __repr__(self) -> str:
        return f"VirtualLoop({self.now:.3f} s)"

    # Time

    def time(self) -> float:
        """Seconds of the running process, suspended time left out."""
        process = CURRENT.get()
        return self.now if process is None else process.monotonic()

    def schedule(self, timer: asyncio.TimerHandle, process: Process) -> None:
        """Put a timer of a process into the order of the region's time."""
        due = timer.when() + process.slept
        heapq.heappush(self._timers, (due, self._chance.random(), self.next_number(), timer, process, process.slept))

    # Callbacks

    def next_number(self) -> int:
        """A number that nothing else of this loop has."""
        self._count += 1
        return self._count

    def create_future(self) -> asyncio.Future[Any]:
        """See asyncio."""
        return OrderedFuture(self.next_number(), self)

    def call_soon(
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """See asyncio; the callback belongs to the process of its context."""
        if context is None:
            context = contextvars.copy_context()
        handle = asyncio.Handle(callback, args, self, context)
        self._queue(handle, context.get(CURRENT) or self.region)
        return handle

    call_soon_threadsafe = call_soon

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """See asyncio; `when` is a time of the process of its context."""
        if context is None:
            context = contextvars.copy_context()
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self.schedule(timer, context.get(CURRENT) or self.region)
        return timer

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """See asyncio."""
        process = (CURRENT.get() if context is None else context.get(CURRENT)) or self.region
        return self.call_at(process.monotonic() + delay, callback, *args, context=context)

    def after(self, seconds: float, callback: Callable[..., Any], *args: Any) -> asyncio.TimerHandle:
        """Call something of the region itself; no fault delays it."""
        return self.call_at(self.now + seconds, callback, *args, context=self.region.context)

    def wake(self, process: Process) -> None:
        """A process may run again."""
        if process.ready and not process.is_queued and process.state is State.RUNNING:
            process.is_queued = True
            self._runnable.append(process)

    def _queue(self, handle: asyncio.Handle, process: Process) -> None:
        if process.state is State.DEAD:
            return
        process.ready.append(handle)
        if not process.is_queued:
            self.wake(process)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer stays until it is due."""

    def _run_once(self) -> None:
        if not self._runnable:
            self._advance()
            return
        last = len(self._runnable) - 1
        chosen = self._chance.randrange(last + 1) if last else 0
        process = self._runnable[chosen]
        self._runnable[chosen] = self._runnable[last]
        self._runnable.pop()
        process.is_queued = False
        self.now += ROUND_SECONDS
        ready = process.ready
        for _ in range(len(ready)):
            if process.state is not State.RUNNING or not ready:
                break
            handle = ready.popleft()
            if not handle.cancelled():
                self.callbacks += 1
                handle._run()
        self.wake(process)
        if self.callbacks - self._looked[0] > BUSY_CALLBACKS:
            if self.now - self._looked[1] < 1:
                raise Livelock(f"{process.name} is busy: {BUSY_CALLBACKS} callbacks in less than a second")
            self._looked = (self.callbacks, self.now)

    def _advance(self) -> None:
        timers = self._timers
        if not timers:
            raise Deadlock("nothing is left to happen")
        first = True
        while timers and (first or timers[0][0] <= self.now):
            due, _, _, timer, process, slept = heapq.heappop(timers)
            if timer.cancelled() or process.state is State.DEAD:
                continue
            if process.slept != slept:
                self.schedule(timer, process)
                continue
            self.now = max(self.now, due)
            first = False
            if process.state is State.SUSPENDED:
                process.held.append(timer)
            else:
                self._queue(timer, process)

    # Threads, names, sockets

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Call `func` a little later: a thread that is fast or slow, or sleeps, but never in parallel."""
        future = self.create_future()
        process = CURRENT.get() or self.region
        half = process.chance.uniform(*process.thread_seconds) / 2
        call: ThreadCall | None = None

        def work() -> None:
            nonlocal call
            call = call or ThreadCall(partial(func, *args))
            seconds = call.resume()
            if seconds is None:
                self.call_later(half, _settle, future, call.result, call.error)
            else:
                self.call_later(seconds, work)

        self.call_later(half, work)
        return future

    async def create_connection(self, protocol_factory: Any, *, sock: Any, **options: Any) -> Any:
        """Use a simulated connection that is open (see `seams`)."""
        protocol = protocol_factory()
        sock.attach(protocol)
        return sock, protocol

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """A failure that nobody handled is a finding."""
        if self.on_failure is not None:
            self.on_failure(CURRENT.get() or self.region, context)


def _make_task(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    assert isinstance(loop, VirtualLoop)
    task = OrderedTask(loop.next_number(), coroutine, loop=loop, **options)
    (CURRENT.get() or loop.region).add_task(task)
    return task


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
