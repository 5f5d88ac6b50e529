"""A user's own code as the destination of the sink `python`; `factory` is what a document names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ots_tunnel.processor import ChannelContext, Confirm, SimpleProcessorFactory
from ots_tunnel.protocol.record import Record
from tests.support.sink_kit import Stored, contents, page

#: Seconds after which a late confirmation comes, and one that is out of order.
LATE, MUCH_LATER = 0.01, 0.06


class Program:
    """Keeps what it processed; with manual checkpoints, what it confirmed.

    Args:
        style: when it confirms, a name in `STYLES`; None is automatic.
    """

    section: ClassVar[Mapping[str, Any]] = {"python": {"factory": f"{__name__}:factory"}}
    current: ClassVar[Program]

    def __init__(self, style: str | None) -> None:
        self.style = style
        self._processed: list[Stored] = []
        self._running = threading.Event()
        self._running.set()
        self._waiting: list[Callable[[], None]] = []
        self._calls = 0
        self._turn = threading.RLock()
        Program.current = self

    async def stored(self) -> list[Stored]:
        """See `Destination.stored`."""
        return list(self._processed)

    def hang(self) -> None:
        """See `Hanging.hang`."""
        self._running.clear()

    def resume(self) -> None:
        """See `Hanging.resume`."""
        self._running.set()

    def process(self, context: ChannelContext, records: Sequence[Record], confirm: Confirm | None = None) -> None:
        """The user's function."""
        self._running.wait(2)  # a callback that hangs longer ends the process
        found = contents([page(0, records)])
        if confirm is None:
            self._processed += found
            return

        def settle() -> None:
            self._processed.extend(found)
            confirm()

        with self._turn:
            self._waiting.append(settle)
        STYLES[self.style or ""](self)

    def shutdown(self, context: ChannelContext) -> None:
        """The user's function for the end of a channel."""
        if self.style == "after close":
            self.confirm_all()

    def confirm_all(self) -> None:
        """Confirm what waits."""
        with self._turn:
            waiting, self._waiting = self._waiting, []
            for settle in waiting:
                settle()

    def confirm_soon(self) -> None:
        """Confirm from another thread, a little later."""
        threading.Timer(LATE, self.confirm_all).start()

    def confirm_every_second(self) -> None:
        """Confirm every second one now, and the others much later."""
        self._calls += 1
        if self._calls % 2 == 0:
            with self._turn:
                self._waiting.pop()()
        else:
            threading.Timer(MUCH_LATER, self.confirm_oldest).start()

    def confirm_oldest(self) -> None:
        """Confirm what waits for the longest time."""
        with self._turn:
            if self._waiting:
                self._waiting.pop(0)()


def _wait(program: Program) -> None:
    """Confirm nothing now."""


#: When a program confirms what it is given, by name.
STYLES: Mapping[str, Callable[[Program], None]] = {
    "at once": Program.confirm_all,
    "late": Program.confirm_soon,
    "out of order": Program.confirm_every_second,
    "never": _wait,
    "after close": _wait,
}


def factory() -> SimpleProcessorFactory:
    """What the document names."""
    program = Program.current
    return SimpleProcessorFactory(
        program.process, shutdown=program.shutdown, manual_checkpoints=program.style is not None
    )
