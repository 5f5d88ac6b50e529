"""A server in a thread of its own, for code without an event loop."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Any, Protocol, Self

from ots_emulator.eventloop import new_event_loop

#: Seconds. Starting and stopping take milliseconds; beyond this something hangs.
_DEADLINE = 10.0


class Runnable(Protocol):
    """Interface of an object that runs in the thread: `Emulator`, or a double of it."""

    @property
    def endpoint(self) -> str:
        """URL clients connect to."""
        ...

    @property
    def admin_url(self) -> str:
        """URL of the admin port."""
        ...

    async def start(self) -> None:
        """Open the ports.

        Raises:
            OSError: an address cannot be used.
        """
        ...

    async def stop(self) -> None:
        """Close the ports."""
        ...

    def commit(self) -> None:
        """Store the changes of a call from another thread."""
        ...


class EmulatorThread:
    """Runs an emulator in a thread; other threads reach its methods through `call`.

    ``with Emulator() as emulator`` does the same in one step.
    """

    def __init__(self, emulator: Runnable) -> None:
        self._emulator = emulator
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ots-emulator", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(_DEADLINE):
            raise TimeoutError(f"the emulator did not start within {_DEADLINE} s")
        if self._failure is not None:
            self._thread.join(_DEADLINE)
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_DEADLINE)
        if self._thread.is_alive():
            raise TimeoutError(f"the emulator did not stop within {_DEADLINE} s")

    @property
    def endpoint(self) -> str:
        """URL clients connect to."""
        return self._emulator.endpoint

    @property
    def admin_url(self) -> str:
        """URL of the admin port."""
        return self._emulator.admin_url

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the emulator in its thread and return its result."""
        assert self._loop is not None

        async def run() -> Any:
            result = getattr(self._emulator, method)(*arguments, **options)
            self._emulator.commit()
            return result

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(_DEADLINE)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            await self._emulator.start()
        except OSError as error:
            self._failure = error
            self._ready.set()
            return
        self._ready.set()
        await self._stop.wait()
        await self._emulator.stop()
