"""Polling for conditions; every wait has a deadline in real time.

In a loop of virtual time the deadline stays one of the machine's clock, while the pauses between two looks are the
loop's: such a wait may take hours of the loop.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds between two looks: of the loop, of a loop of virtual time, where a wait of hours is usual, and of a thread
#: that may wait for another process.
LOOP_PAUSE = 0.01
VIRTUAL_PAUSE = 0.05
THREAD_PAUSE = 0.02


async def until(
    condition: Callable[[], T | Awaitable[T]], seconds: float = 90, what: str = "", *, pause: float | None = None
) -> T:
    """Wait in the event loop for a condition; return its first true answer.

    Args:
        condition: a function, or a coroutine function.
        seconds: real time after which the test fails.
        what: what is waited for, in the words of a failure.
        pause: seconds of the loop between two looks; by default what suits the loop.
    """
    give_up = time.monotonic() + seconds
    if pause is None:
        pause = VIRTUAL_PAUSE if getattr(asyncio.get_running_loop(), "looptime_on", False) else LOOP_PAUSE
    while True:
        answer: Any = condition()
        found: T = await answer if inspect.isawaitable(answer) else answer
        if found:
            return found
        assert time.monotonic() < give_up, f"not within {seconds:g} s: {what or condition}"
        await asyncio.sleep(pause)


def wait_until(
    condition: Callable[[], T],
    seconds: float = 45,
    what: str = "",
    *,
    pause: float = THREAD_PAUSE,
    explain: Callable[[], str] = str,
) -> T:
    """Wait in a thread for a condition; return its first true answer.

    Args:
        explain: describes what there is instead, for a failure.
    """
    give_up = time.monotonic() + seconds
    while True:
        if found := condition():
            return found
        assert time.monotonic() < give_up, f"not within {seconds:g} s: {what or condition}\n{explain()}"
        time.sleep(pause)
