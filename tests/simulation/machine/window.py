"""An answer that comes in pieces: the first bytes, and after a while the rest, unless its process does not read.

What a process does not read stays with its kernel and at the sender: it takes no memory of the process.
"""

from __future__ import annotations

from collections.abc import Callable

#: Bytes that come first, and seconds until the rest.
FIRST_BYTES, REST_SECONDS = 100, 5.0


class Window:
    """The receiving end of one connection.

    Args:
        after: calls something after seconds.
        deliver: gives bytes to the process.
        taken: called when the process, which had stopped reading, goes on in the middle of an answer.
    """

    def __init__(
        self,
        after: Callable[[float, Callable[[], None]], None],
        deliver: Callable[[bytes], None],
        taken: Callable[[], None],
    ) -> None:
        self._after = after
        self._deliver = deliver
        self._taken = taken
        self._rest = b""
        self._is_paused = self._is_due = False
        #: Whether the process has chosen to take an answer whose rest is still to come.
        self.is_taking = False

    def arrive(self, data: bytes) -> None:
        """An answer begins."""
        self._deliver(data[:FIRST_BYTES])
        self._rest, self._is_due = data[FIRST_BYTES:], False
        self._after(REST_SECONDS, self._go_on)

    def pause(self) -> None:
        """The process stops reading."""
        self._is_paused = True

    def resume(self) -> None:
        """The process reads again."""
        self._is_paused = False
        if self._rest:
            self.is_taking = True
            self._taken()
        if self._is_due:
            self._is_due = False
            self._after(REST_SECONDS, self._go_on)

    def _go_on(self) -> None:
        if self._is_paused:
            self._is_due = True
            return
        rest, self._rest, self.is_taking = self._rest, b"", False
        if rest:
            self._deliver(rest)
