"""A call in a thread, which takes turns with the loop: one of them stands still while the other one runs.

So nothing is ever in parallel, and a call can sleep on virtual time: the vendor's SDK does between its retries.
"""

from __future__ import annotations

import _thread
import asyncio
import contextvars
from asyncio import _set_running_loop
from collections.abc import Callable
from typing import Any

from tests.simulation.machine.determinism import SLEEP


class ThreadCall:
    """One call.

    Args:
        call: runs in the context of the caller, with the caller's loop as the running one.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._seconds: float | None = None
        self._is_begun = False
        self._its_turn = _thread.allocate_lock()
        self._our_turn = _thread.allocate_lock()
        self._its_turn.acquire()
        self._our_turn.acquire()
        self.result: Any = None
        self.error: BaseException | None = None

    def resume(self) -> float | None:
        """Run until it sleeps, and return for how many seconds; None at its end."""
        self._seconds = None
        if self._is_begun:
            self._its_turn.release()
        else:
            self._is_begun = True
            # `threading` waits at its exit for threads, and those of a killed process never end
            _thread.start_new_thread(self._context.run, (self._run,))
        self._our_turn.acquire()
        return self._seconds

    def _run(self) -> None:
        _set_running_loop(self._loop)
        SLEEP.of = self._sleep
        try:
            self.result = self._call()
        except BaseException as raised:
            # the future carries it to the caller, as an executor's does
            self.error = raised
        self._our_turn.release()

    def _sleep(self, seconds: float) -> None:
        self._seconds = seconds
        self._our_turn.release()
        self._its_turn.acquire()
