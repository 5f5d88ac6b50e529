"""Turns of passes and of calls to instances, and what is known of an instance that does not answer.

Theory of operation
-------------------
Many objects share an instance, and all objects share the process. One instance that is silent must cost neither:

    turn of a pass     lent to other passes while a pass waits for an instance (`PassTurn`)
    turn of a call     at most CALLS calls to an instance at once
    blocking call      of the vendor's SDK: in a thread, and one instance never has all threads of the process
    circuit            after a call without an answer one call at a time, the probe, finds out whether the instance
                       answers; the calls of all other objects await it, and fail with it or go on

A call counts as unanswered only if the instance answered no other call meanwhile: one slow call says nothing about an
instance that works. For the same reason the wait for a turn is no evidence as long as the instance answers anything, or
as long as the queue stands at the threads of the process: only after TURN_SECONDS without either it ends.

The turns of one call are taken in the order (thread of the instance, call, thread of the process), so that calls that
wait for a thread hold few turns, and calls that wait for a turn hold no thread of the process.

Example: 120 objects, packets to their instance are dropped. Eight calls fail after 10 s; the ninth is the probe, fails
after 10 s, and all others fail with it. From now on each pass waits for a probe. With an instance that answers each
call in 0.2 s, 1,000 objects wait for half a minute after a start, and none of them reports anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Self, TypeVar

from ots_tunnel.errors import ReadTimeout, TransportError, TunnelError
from ots_tunnel.tables import POOL_THREADS

R = TypeVar("R")

#: Calls to one instance under way at once.
CALLS = 8
#: Calls of the vendor's SDK to one instance at once: the others of the process's threads stay free for other instances.
BLOCKING_CALLS = POOL_THREADS // 2
#: Seconds without an answer of the instance for which a call waits for all its turns together. With the probe and the
#: call itself less than the minute in which an object has to say that it could not be observed (docs/architecture.md
#: rule 11).
TURN_SECONDS = 20.0
#: Seconds for which a call awaits another one, the probe.
PROBE_SECONDS = 20.0


class PassTurn:
    """The turn of one pass, held from `async with` on.

    Args:
        turns: bounds the passes that run at once; None sets no bound.
    """

    def __init__(self, turns: asyncio.Semaphore | None = None) -> None:
        self._turns = turns
        self._held = False

    async def __aenter__(self) -> Self:
        await self._take()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._give_back()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Let other passes run meanwhile. After an error the pass ends, which needs no turn."""
        self._give_back()
        yield
        await self._take()

    async def _take(self) -> None:
        if self._turns is not None:
            await self._turns.acquire()
            self._held = True

    def _give_back(self) -> None:
        if self._turns is not None and self._held:
            self._held = False
            self._turns.release()


class Circuit:
    """Lets calls to an instance through, or none but a probe while the instance is silent.

    Attributes:
        failure: why the last call had no answer; None once the instance answers.
        answered_at: when the instance answered last, on the running loop's clock; before its first answer -inf.
    """

    def __init__(self) -> None:
        self.failure: TransportError | None = None
        self.answered_at = float("-inf")
        self._answers = 0
        self._probe: asyncio.Event | None = None

    @property
    def admits(self) -> bool:
        """Whether a call may be made now, if only as the probe."""
        return self.failure is None or self._probe is None

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Let a call through, and learn from its end; only where `admits`."""
        probe = None if self.failure is None else asyncio.Event()
        self._probe = probe or self._probe
        before = self._answers
        try:
            yield
        except (TransportError, TimeoutError, OSError) as error:
            if self._answers == before:
                self.failure = error if isinstance(error, TransportError) else TransportError(str(error))
            raise
        except TunnelError:
            self._answered()
            raise
        else:
            self._answered()
        finally:
            if probe is not None:
                self._probe = None
                probe.set()

    async def probed(self) -> None:
        """Await the probe that is under way, if there is one.

        Raises:
            TransportError: it had no answer, or none within PROBE_SECONDS.
        """
        if self._probe is None:
            return
        failure, probe = self.failure, self._probe
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await probe.wait()
        except TimeoutError:
            self.check()
        # the failure of before: the probe was cancelled, which says nothing
        if self.failure is not failure:
            self.check()

    def check(self) -> None:
        """Raise what is known of a silent instance.

        Raises:
            TransportError: the last call had no answer.
        """
        if self.failure is not None:
            # a new error: one that is raised again and again would keep every traceback
            raise type(self.failure)(str(self.failure))

    def _answered(self) -> None:
        self._answers += 1
        self.answered_at = asyncio.get_running_loop().time()
        self.failure = None


class Calls:
    """Calls to one instance, whatever their key pair.

    Args:
        threads: bounds the calls of the vendor's SDK, of the whole process.
    """

    def __init__(self, threads: asyncio.Semaphore) -> None:
        self._threads = threads
        self._waiting_for_threads = 0
        self._turns = asyncio.Semaphore(CALLS)
        self._blocking = asyncio.Semaphore(BLOCKING_CALLS)
        self._circuit = Circuit()

    async def make(self, seconds: float, call: Callable[[], Awaitable[R]], *, blocks: bool = False) -> R:
        """Make a call when it is its turn.

        Args:
            seconds: for which the call may last, from its turn on.
            call: begins the call.
            blocks: whether it occupies a thread.

        Raises:
            TransportError: no answer, no turn while the instance answered nothing, or the instance is silent.
            Exception: the call's own errors.
        """
        while True:
            async with AsyncExitStack() as held:
                await self._take_turns(held, blocks=blocks)
                if self._circuit.admits:
                    with self._circuit.admitted():
                        return await _within(seconds, call(), "no answer")
            # awaited without a turn: those behind await the same probe, and fail or go on together
            await self._circuit.probed()

    async def _take_turns(self, held: AsyncExitStack, *, blocks: bool) -> None:
        async with self._patience():
            if blocks:
                await held.enter_async_context(self._blocking)
            await held.enter_async_context(self._turns)
            if blocks:
                self._waiting_for_threads += 1
                try:
                    await held.enter_async_context(self._threads)
                finally:
                    self._waiting_for_threads -= 1

    @asynccontextmanager
    async def _patience(self) -> AsyncIterator[None]:
        """Bound a wait for turns.

        Raises:
            TransportError: for TURN_SECONDS the instance answered nothing, and its calls did not wait for a thread.
        """
        loop = asyncio.get_running_loop()
        moved_at = loop.time()
        handle: asyncio.TimerHandle

        def look() -> None:
            nonlocal moved_at, handle
            is_at_threads = self._waiting_for_threads > 0 and self._circuit.failure is None
            moved_at = loop.time() if is_at_threads else max(moved_at, self._circuit.answered_at)
            if moved_at + TURN_SECONDS <= loop.time():
                limit.reschedule(loop.time())
            else:
                handle = loop.call_at(moved_at + TURN_SECONDS, look)

        handle = loop.call_later(TURN_SECONDS, look)
        try:
            async with asyncio.timeout(None) as limit:
                yield
        except TimeoutError as error:
            self._circuit.check()
            raise ReadTimeout(f"no turn for a call within {TURN_SECONDS:g} s") from error
        finally:
            handle.cancel()


async def _within(seconds: float, call: Awaitable[R], missed: str) -> R:
    """Await a call.

    Raises:
        ReadTimeout: it took longer; `missed` says what did not come.
        Exception: the call's own errors.
    """
    try:
        async with asyncio.timeout(seconds) as limit:
            return await call
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise ReadTimeout(f"{missed} within {seconds:g} s") from error
