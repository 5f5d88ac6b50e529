"""How far a comparison is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import TextIO

from ots_tunnel.errors import TunnelError
from ots_tunnel.verify.job import Meter

#: Seconds between two lines where there is no terminal.
LINE_PAUSE = 10.0

#: Seconds between two notes on calls that are repeated.
NOTE_PAUSE = 5.0

#: Seconds between two pictures on a terminal, and two looks at the clock.
TICK = 0.25


def meter_line(meter: Meter, seconds: float) -> str:
    """One line of progress, `seconds` after the run began; pure."""
    rate = (meter.rows - meter.rows_before) / seconds if seconds > 0 else 0.0
    parts = [
        f"{meter.rows:,} rows",
        f"{rate:,.0f} rows/s",
        f"slices {meter.slices_done:,}/{meter.slices:,}",
        f"{meter.differences:,} differences",
    ]
    if meter.suspects:
        parts.append(f"{meter.suspects:,} rows to look at again")
    if (left := seconds_left(meter, seconds)) is not None:
        parts.append(f"about {duration(left)} left")
    return ", ".join(parts)


def seconds_left(meter: Meter, seconds: float) -> float | None:
    """Estimate from the slices of this run; None before the first is done, and after the last. Pure."""
    done = meter.slices_done - meter.slices_before
    left = meter.slices - meter.slices_done
    return left * seconds / done if done > 0 and left else None


def duration(seconds: float) -> str:
    """A duration such as 1:02:03 or 2:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class RepeatNotes:
    """Says that calls are repeated, so that nobody takes a patient client for one that hangs.

    Args:
        say: prints a line.
        clock: seconds, monotonic.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._next = float("-inf")
        self._silent = 0

    def __call__(self, operation: str, error: TunnelError) -> None:
        """Told of every call that is repeated, and why."""
        self._silent += 1
        if self._clock() < self._next:
            return
        self._next = self._clock() + NOTE_PAUSE
        others = f" ({self._silent:,} calls since the last note)" if self._silent > 1 else ""
        self._say(f"{operation} is repeated{others}: {error}")
        self._silent = 0


@contextlib.asynccontextmanager
async def shown(meter: Meter, stream: TextIO, tick: Callable[[], None]) -> AsyncIterator[None]:
    """Show a meter on a stream while the block runs; `tick` is called now and then."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        draw = _bar(meter, stream, began, stack) or _lines(meter, stream, began)
        task = asyncio.create_task(_repeat(draw, tick), name="progress")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            draw()


async def _repeat(draw: Callable[[], None], tick: Callable[[], None]) -> None:
    while True:
        draw()
        tick()
        await asyncio.sleep(TICK)


def _lines(meter: Meter, stream: TextIO, began: float) -> Callable[[], None]:
    due = began + LINE_PAUSE

    def draw() -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due:
            due = now + LINE_PAUSE
            print(meter_line(meter, now - began), file=stream, flush=True)

    return draw


def _bar(meter: Meter, stream: TextIO, began: float, stack: contextlib.ExitStack) -> Callable[[], None] | None:
    """None where the stream is no terminal or the extra `cli` is not installed."""
    if not stream.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
    except ImportError:
        return None
    columns = (BarColumn(20), TextColumn("{task.description}"))
    progress = stack.enter_context(Progress(*columns, console=Console(file=stream), auto_refresh=False))
    task = progress.add_task("", total=meter.slices or None)

    def draw() -> None:
        text = meter_line(meter, time.monotonic() - began)
        progress.update(task, completed=meter.slices_done, description=text, refresh=True)

    return draw
