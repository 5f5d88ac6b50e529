"""Progress of long work: a bar on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Protocol, TextIO

#: Seconds between two lines if the stream is not a terminal.
LINE_PAUSE = 10.0

#: Seconds between two updates of the bar.
TICK = 0.25


class HasProgress(Protocol):
    """Work whose progress can be shown."""

    @property
    def share(self) -> float | None:
        """Share that is done, 0 to 1; None if it is unknown."""
        ...

    def line(self, seconds: float) -> str:
        """One line of text, `seconds` after the work began."""
        ...


def duration(seconds: float) -> str:
    """A duration as text, such as 1:02:03 or 2:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextlib.asynccontextmanager
async def show_progress(
    work: HasProgress, stream: TextIO, tick: Callable[[], None] = lambda: None
) -> AsyncIterator[None]:
    """Show progress on a stream while the block runs; call `tick` every `TICK` seconds."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        draw = _bar(work, stream, began, stack) or _lines(work, stream, began)
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


def _lines(work: HasProgress, stream: TextIO, began: float) -> Callable[[], None]:
    """Function that prints a line if `LINE_PAUSE` has passed since the last one."""
    due = began + LINE_PAUSE

    def draw() -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due:
            due = now + LINE_PAUSE
            print(work.line(now - began), file=stream, flush=True)

    return draw


def _bar(work: HasProgress, stream: TextIO, began: float, stack: contextlib.ExitStack) -> Callable[[], None] | None:
    """Function that draws the bar; None if the stream is not a terminal or the extra `cli` is not installed."""
    if not stream.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
    except ImportError:
        return None
    columns = (BarColumn(20), TextColumn("{task.description}"))
    # Lines that other code writes to standard error appear above the bar, unwrapped.
    console = Console(file=stream, soft_wrap=True)
    progress = stack.enter_context(Progress(*columns, console=console, auto_refresh=False))
    task = progress.add_task("", total=None)

    def draw() -> None:
        share = work.share
        text = work.line(time.monotonic() - began)
        total, completed = (None, 0.0) if share is None else (1.0, share)
        progress.update(task, total=total, completed=completed, description=text, refresh=True)

    return draw
