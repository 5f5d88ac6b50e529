"""The end of a process whose drain takes too long."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

from ots_tunnel.console.exit_codes import OTHER_ERROR
from ots_tunnel.log_actions import LogAction

logger = logging.getLogger(__name__)

#: Seconds after the drain's limit when the process ends anyway: what ends in good order has ended by then.
OVERDUE_AFTER = 2.0


class LastResort:
    """Ends the process when a drain takes too long, whatever hangs: a thread's call, or the event loop itself.

    Args:
        seconds: from the first order to drain.
        end: ends the process at once.
    """

    def __init__(self, seconds: float, end: Callable[[int], object] = os._exit) -> None:
        self._seconds = seconds
        self._end = end
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        """The order to drain has come; a later one changes nothing."""
        if self._timer is None:
            self._timer = threading.Timer(self._seconds, self._give_up)
            self._timer.daemon = True
            self._timer.start()

    def cancel(self) -> None:
        """The drain is over."""
        if self._timer is not None:
            self._timer.cancel()

    def _give_up(self) -> None:
        logger.critical(
            "the drain is overdue: the process ends",
            extra={"action": LogAction.DRAIN_OVERDUE, "seconds": self._seconds},
        )
        logging.shutdown()
        self._end(OTHER_ERROR)
