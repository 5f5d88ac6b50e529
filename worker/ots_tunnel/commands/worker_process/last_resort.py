"""The end of a process that takes too long to end by itself."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from typing import Final

from ots_tunnel.console.exit_codes import OTHER_ERROR
from ots_tunnel.log_actions import LogAction

logger = logging.getLogger(__name__)

#: Seconds after the drain's limit when the process ends anyway: what ends in good order has ended by then.
OVERDUE_AFTER: Final = 2.0
#: Seconds until the document has told its limit, which is 45 s by default.
USUAL_SECONDS: Final = 45.0 + OVERDUE_AFTER
#: Seconds for telling why the process ends.
TELLING: Final = 1.0


class LastResort:
    """Ends the process when its end takes too long, whatever hangs: a thread's call, or the event loop itself.

    The time begins with the first order to drain, or when the worker is over. Nothing stops it but the process's end: a
    thread of the user's code may hang behind everything else.

    Args:
        seconds: from the beginning; may be set until then.
        end: ends the process at once.
    """

    def __init__(self, seconds: float = USUAL_SECONDS, end: Callable[[int], object] = os._exit) -> None:
        self.seconds = seconds
        self._end = end
        self._code: int | None = None
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __repr__(self) -> str:
        return f"LastResort({self.seconds:g} s, begun={self._timer is not None})"

    def begin(self) -> None:
        """The order to drain has come; a later one changes nothing. Any thread may call it."""
        with self._lock:
            if self._timer is not None:
                return
            self._timer = threading.Timer(self.seconds, self._give_up)
            self._timer.daemon = True
            with contextlib.suppress(RuntimeError):  # the system starts no thread: the end takes as long as it takes
                self._timer.start()

    def leave_with(self, code: int) -> None:
        """The worker is over: from now on the process ends with this exit code, also where it is ended."""
        self._code = code
        self.begin()

    def _give_up(self) -> None:
        # the log may be what hangs: a handler of the user's code, or a pipe that is not read
        telling = threading.Thread(target=self._tell, name="last resort", daemon=True)
        with contextlib.suppress(RuntimeError):  # the system starts no thread: it ends untold
            telling.start()
            telling.join(TELLING)
        self._end(OTHER_ERROR if self._code is None else self._code)

    def _tell(self) -> None:
        late = "the drain is overdue" if self._code is None else "a thread does not end"
        logger.critical(f"{late}: the process ends", extra={"action": LogAction.DRAIN_OVERDUE, "seconds": self.seconds})
        logging.shutdown()
