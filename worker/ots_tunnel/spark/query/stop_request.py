"""SIGTERM as a request: the program looks at it between two looks at its query."""

from __future__ import annotations

import signal
from dataclasses import dataclass


@dataclass(slots=True)
class StopRequest:
    """Whether the process was asked to end."""

    is_made: bool = False

    def listen(self) -> None:
        """Take SIGTERM and SIGINT from now on; for the main thread.

        Nothing else happens in the handler: the thread may be in the middle of a call to the JVM.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._take)

    def _take(self, number: int, frame: object) -> None:
        self.is_made = True
