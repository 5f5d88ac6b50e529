"""Calls to one instance, in turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from ots_tunnel.errors import ReadTimeout
from ots_tunnel_operator.turns.circuit import Circuit
from ots_tunnel_operator.turns.queue import PATIENCE_SECONDS, NoTurn, Patience, Turns

R = TypeVar("R")

#: Calls to one instance under way at once.
CALLS = 8
#: Seconds without an answer of the instance for which a call waits for its turn.
TURN_SECONDS = 20.0
#: Seconds for which a call awaits another one, the probe.
PROBE_SECONDS = 20.0


class Calls:
    """Calls to one instance, whatever their key pair.

    Args:
        failed: called with the error of each call that was made and failed.
    """

    def __init__(self, failed: Callable[[Exception], None] = lambda error: None) -> None:
        self._failed = failed
        self._turns = Turns(CALLS)
        self._circuit = Circuit()
        #: Those that a call asks for now. Tables and tunnels come and go, so only the silent ones are kept.
        self._parts: WeakValueDictionary[str, Circuit] = WeakValueDictionary()
        self._silent: dict[str, Circuit] = {}

    async def make(
        self,
        seconds: float,
        call: Callable[[], Awaitable[R]],
        patience: Patience,
        *,
        about: str = "",
    ) -> R:
        """Make a call when it is its turn.

        Args:
            seconds: for which the call may last, from its turn on.
            call: begins the call.
            patience: of the pass that makes it.
            about: the part of the instance that may be silent while the others answer; empty for none.

        Raises:
            TransportError: no answer, no turn while the instance answered nothing, or the instance is silent.
            NoTurn: the instance answers others, but the patience has ended.
            Exception: the call's own errors.
        """
        with self._part(about) as part:
            circuits = (self._circuit,) if part is None else (self._circuit, part)
            while True:
                # awaited without a turn: those behind await the same probe, and fail or go on together
                for circuit in circuits:
                    await self._probed(circuit, patience)
                async with AsyncExitStack() as held:
                    await self._take_turn(held, patience)
                    if all(circuit.admits for circuit in circuits):
                        for circuit in circuits:
                            held.enter_context(circuit.admitted())
                        return await self._made(seconds, call)

    async def _made(self, seconds: float, call: Callable[[], Awaitable[R]]) -> R:
        try:
            return await _within(seconds, call(), "no answer")
        except Exception as error:
            self._failed(error)
            raise

    @contextmanager
    def _part(self, about: str) -> Iterator[Circuit | None]:
        """The circuit of a part of the instance; None without a name."""
        if not about:
            yield None
            return
        circuit = self._parts.get(about) or Circuit()
        self._parts[about] = circuit
        try:
            yield circuit
        finally:
            if circuit.failure is None:
                self._silent.pop(about, None)
            else:
                self._silent[about] = circuit

    async def _probed(self, circuit: Circuit, patience: Patience) -> None:
        with patience.waiting():
            left = patience.ends_at - asyncio.get_running_loop().time()
            await circuit.probed(min(PROBE_SECONDS, left))

    async def _take_turn(self, held: AsyncExitStack, patience: Patience) -> None:
        if self._turns.is_free:
            # the usual case, which needs no clock
            await held.enter_async_context(self._turns.taken(patience.place))
            return
        async with self._bounded(patience):
            await held.enter_async_context(self._turns.taken(patience.place))

    @asynccontextmanager
    async def _bounded(self, patience: Patience) -> AsyncIterator[None]:
        """Bound a wait for a turn.

        Raises:
            TransportError: for TURN_SECONDS the instance answered nothing.
            NoTurn: the patience has ended.
        """
        loop = asyncio.get_running_loop()
        moved_at = loop.time()
        handle: asyncio.TimerHandle

        def look() -> None:
            nonlocal moved_at, handle
            moved_at = max(moved_at, self._circuit.answered_at)
            end = min(moved_at + TURN_SECONDS, patience.ends_at)
            if end <= loop.time():
                limit.reschedule(loop.time())
            else:
                handle = loop.call_at(end, look)

        with patience.waiting():
            handle = loop.call_at(min(moved_at + TURN_SECONDS, patience.ends_at), look)
            try:
                async with asyncio.timeout(None) as limit:
                    yield
            except TimeoutError as error:
                self._circuit.check()
                if moved_at + TURN_SECONDS <= loop.time():
                    raise ReadTimeout(f"no turn for a call within {TURN_SECONDS:g} s") from error
                patience.has_ended = True
                raise NoTurn(f"no turn for a call within {PATIENCE_SECONDS:g} s, while others are answered") from error
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
