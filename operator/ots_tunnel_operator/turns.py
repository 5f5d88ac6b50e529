"""Turns of passes and of calls to instances, and what is known of an instance that does not answer.

Theory of operation
-------------------
Many objects share an instance, and all objects share the process. One instance that is silent must cost neither:

    turn of a pass     lent to other passes while a pass waits for an instance (`PassTurn`)
    turn of a call     at most CALLS calls to an instance at once; the wait for a turn is bounded by TURN_SECONDS
    blocking call      of the vendor's SDK: in a thread, and one instance never has all threads of the process
    circuit            after a call without an answer, the calls of all objects fail at once with the same reason, apart
                       from one at a time, the probe; any answer of the instance closes the circuit

A call counts as unanswered only if the instance answered no other call meanwhile: one slow call says nothing about an
instance that works.

Example: 120 objects, packets to their instance are dropped. Eight calls fail after 10 s, those that wait for a turn
fail with them, and from now on one object at a time finds out whether the instance answers again.
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
#: Seconds for which a call waits for each of its turns; with the call itself less than the minute in which an object
#: has to say that it could not be observed (docs/architecture.md rule 11).
TURN_SECONDS = 20.0


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
    """Lets calls to an instance through, or none but a probe while the instance is silent."""

    def __init__(self) -> None:
        self._failure: TransportError | None = None
        self._answers = 0
        self._probing = False

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Let a call through, and learn from its end.

        Raises:
            TransportError: the instance is silent, and another call already probes it.
        """
        is_probe = self._failure is not None
        if self._failure is not None and self._probing:
            # a new error: one that is raised again and again would keep every traceback
            raise type(self._failure)(str(self._failure))
        self._probing = self._probing or is_probe
        before = self._answers
        try:
            yield
        except (TransportError, TimeoutError, OSError) as error:
            if self._answers == before:
                self._failure = error if isinstance(error, TransportError) else TransportError(str(error))
            raise
        except TunnelError:
            self._answered()
            raise
        else:
            self._answered()
        finally:
            if is_probe:
                self._probing = False

    def _answered(self) -> None:
        self._answers += 1
        self._failure = None


class Calls:
    """Calls to one instance, whatever their key pair.

    Args:
        threads: bounds the calls of the vendor's SDK, of the whole process.
    """

    def __init__(self, threads: asyncio.Semaphore) -> None:
        self._threads = threads
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
            TransportError: no answer, no turn in time, or the instance is known to be silent.
            Exception: the call's own errors.
        """
        turns = (self._turns, self._blocking, self._threads) if blocks else (self._turns,)
        async with AsyncExitStack() as stack:
            for turn in turns:
                await _within(TURN_SECONDS, stack.enter_async_context(turn), "no turn for a call")
            stack.enter_context(self._circuit.admitted())
            return await _within(seconds, call(), "no answer")


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
